// Guards of what joins its key when it is due.
const joining = 'tests/integration/order-joining.test.ts'

export const joins = [
  {
    name: 'order: locks of what joins are asked for before it is counted',
    guard:
      'Timers of a key that somebody is publishing to keep those of other keys waiting by none of the places that one statement has.',
    file: 'sql/join-keys.ts',
    find: `               from sight as s
              where s.queue = w.queue
              group by`,
    replace: `               from (select * from sight as a where a.queue = w.queue order by a.due_at, a.seq limit \${mostJoining}) as s
              group by`,
    tests: [joining],
    titled: 'timers of a key join while somebody publishes to another',
  },
  {
    name: 'order: one lock for all of a key that join',
    guard:
      'The lock of a key is asked for once by one statement: a timer does not overtake one that was due before.',
    file: 'sql/join-keys.ts',
    find: '              group by s.queue, s.later_key\n',
    replace: '              group by s.queue, s.later_key, s.seq\n',
    tests: [joining],
    titled: 'a key that was not to be had for the first of its timers',
  },
  {
    name: 'order: leases of what joins',
    guard:
      'A message that somebody holds does not join its key, and is not counted among the due rows that are looked at.',
    file: 'sql/first-rows.ts',
    find: `return \`\${isFree(row)}\${generation === null`,
    replace: `return \`true\${generation === null`,
    tests: [joining],
    titled: 'a timer that somebody holds stays his until his lease has ended',
  },
  {
    name: 'order: generations of what joins',
    guard:
      'Due rows that wait for newer code are not counted among those that older code looks at for what joins its key.',
    file: 'sql/first-rows.ts',
    find: `generation === null ? '' : \` and (\${isOurs})\``,
    replace: `isOurs === '' || generation === null ? '' : \` and \${generation} is not null\``,
    tests: [joining],
    titled: 'which are for newer code',
  },
  {
    name: 'order: newer ones that join',
    guard: 'A message that waits for newer code joins its key by older code, too.',
    file: 'sql/first-rows.ts',
    find: `\`\${row}later_key is not null or \${row}generation is null`,
    replace: `\`\${row}generation is null`,
    tests: [joining],
    titled: 'a timer that waits for newer code joins its key by older code, too',
  },
  {
    name: 'order: the generation of who lets others join',
    guard: 'A process tells its generation when it lets messages join their keys.',
    file: 'runtime/claim-order.ts',
    find: 'joinKeys(names, { queues, generation })',
    replace: 'joinKeys(names, { queues, generation: generation && null })',
    tests: [joining],
    titled: 'a process lets timers join by its own generation',
  },
]
