const guards = 'tests/integration/order-guards.test.ts'
const locked = 'tests/integration/order-locked.test.ts'

/** First rows that somebody has locked, or that are of a newer generation: what they must not hold back. */
export const lockedFirsts = [
  {
    name: 'order: room of locked firsts',
    guard: 'First rows that somebody has locked leave their room to the next.',
    file: 'sql/claim-in-order.ts',
    find: 'from ranked as r where r.ord = w.ord order by r.place) as r',
    replace: 'from ranked as r where r.ord = w.ord order by r.place limit w.room) as r',
    tests: [locked],
    titled: 'leave',
  },
  {
    name: 'order: locks of firsts',
    guard: 'A claim locks no more first rows than it has room for.',
    file: 'sql/claim-in-order.ts',
    find: '      limit w.room) as p\n',
    replace: '      ) as p\n',
    tests: [locked],
    titled: 'locks no more rows than it has room for',
  },
  {
    name: 'order: firsts in turn',
    guard: 'First rows are locked in the order of their places.',
    file: 'sql/claim-in-order.ts',
    find: 'where r.ord = w.ord order by r.place) as r',
    replace: 'where r.ord = w.ord order by r.place desc) as r',
    tests: [locked],
    titled: 'in turn',
  },
  {
    name: 'order: due behind locked ones',
    guard: 'More is offered of what is due than there is room for.',
    file: 'sql/first-rows.ts',
    find: `limit w.room + \${spareLooks}) as d`,
    replace: 'limit w.room) as d',
    tests: [locked],
    titled: 'first rows that are due',
  },
  {
    name: 'order: reach where fresh ones are locked',
    guard: 'A claim that was not offered all fresh firsts has not looked behind the last of them.',
    file: 'sql/claim-in-order.ts',
    find: 'coalesce(f.first_left - 1, o.last_fresh, v.last)',
    replace: 'coalesce(f.first_left - 1, v.last)',
    tests: [locked],
    titled: 'how far it has looked',
  },
  {
    name: 'order: more behind locked ones',
    guard: 'A claim that was not offered all fresh firsts says that there may be more.',
    file: 'sql/claim-in-order.ts',
    find: ' or o.last_fresh is not null or v.seen',
    replace: ' or v.seen',
    tests: [locked],
    titled: 'how far it has looked',
  },
  {
    name: 'order: left of the due',
    guard: 'A claim that was not offered all that is due, and had room, says that something was left.',
    file: 'sql/claim-in-order.ts',
    find: ' or o.is_due_cut)',
    replace: ')',
    tests: [locked],
    titled: 'of what is due, it says',
  },
  {
    name: 'order: locked is not at once',
    guard: 'A claim that brought nothing, since others have locked it, is not sent again at once.',
    file: 'runtime/claim-order.ts',
    find: "kind === 'claim' && !isLocked)",
    replace: "kind === 'claim')",
    tests: ['runtime/claim-order.test.ts'],
  },
  {
    name: 'order: locked is tried again',
    guard: 'A claim that had room, and left something, is sent again in a moment.',
    file: 'runtime/claim-order.ts',
    find: 'isLeft && !hasTakenAll ? soon(receivedAt, nextDueAt) : nextDueAt',
    replace: 'nextDueAt',
    tests: ['runtime/claim-order.test.ts'],
  },
  {
    name: 'order: newer ones among the due',
    guard:
      'Due rows of a newer generation do not count as looked at: they would hide what is due behind them.',
    file: 'sql/first-rows.ts',
    find: `and r.due_at <= now()\${isOurs('r.')}
                       order by r.due_at, r.seq
                       limit \${mostDueLooks}) as m
               where m.later_key is null`,
    replace: `and r.due_at <= now()
                       order by r.due_at, r.seq
                       limit \${mostDueLooks}) as m
               where m.later_key is null\${isOurs('m.')}`,
    tests: [guards],
    titled: 'do not hide one that is due',
  },
  {
    name: 'order: newer ones among what joins',
    guard: 'Due rows of a newer generation do not hide that something behind them has to join its key.',
    file: 'sql/claim-in-order.ts',
    find: "mayJoin('m.', generation === null ? null : '$5::bigint')",
    replace: "mayJoin('m.', generation === null || generation > 0 ? null : '$5::bigint')",
    tests: [guards],
    titled: 'has to join its key',
  },
  {
    name: 'order: what was due first',
    guard: 'Of what is due, what was due first is taken first, whatever its place.',
    file: 'sql/claim-in-order.ts',
    find: 'partition by ord, lane order by due_at, seq',
    replace: 'partition by ord, lane order by seq',
    tests: [guards],
    titled: 'what was due first is taken first',
  },
]
