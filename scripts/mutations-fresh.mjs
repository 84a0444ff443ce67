const store = ['tests/conformance/stores.test.ts']
const wakes = ['runtime/engine-wakes.test.ts']
const claimer = ['runtime/claim-fresh.test.ts']
const file = 'sql/claim-fresh.ts'

/** The least claim, which a sleeper that was woken sends before it looks at everything. */
export const fresh = [
  {
    name: 'least claim: suspects',
    guard: 'The least claim leaves what was delivered before: it cannot tell whether that is a suspect.',
    file,
    find: `            and m.lease_token is null
            and m.deliveries <= m.attempts`,
    replace: '            and m.lease_token is null',
    tests: store,
    titled: 'leaves a suspect that was given back',
  },
  {
    name: 'least claim: due rows',
    guard: 'The least claim takes only what is fresh.',
    file,
    find: '            and m.due_at is null\n',
    replace: '',
    tests: store,
    titled: 'leaves what is due, whether its time has come or not',
  },
  {
    name: 'least claim: skip locked',
    guard: 'The least claim steps over rows that another is claiming, and waits for nobody.',
    file,
    find: 'for update of m skip locked',
    replace: 'for update of m',
    tests: store,
    titled: 'the least claim steps over what another is claiming',
  },
  {
    name: 'least claim: paused queues',
    guard: 'The least claim takes nothing of a queue that is paused, or is in the order of its keys.',
    file,
    find: `\n   and not exists (select from \${names.queues} as q where q.name = $1::text and \${isHeld})`,
    replace: '',
    tests: store,
    titled: 'takes nothing of a queue that is paused',
  },
  {
    name: 'least claim: count of deliveries',
    guard: 'The least claim counts the delivery, as every claim does.',
    file,
    find: '       deliveries = m.deliveries + 1,\n',
    replace: '',
    tests: store,
    titled: 'takes what nobody had yet',
  },
  {
    name: 'least claim: newer generations',
    guard: 'Code of a generation takes nothing of a newer one by the least claim, either.',
    file,
    find: '(m.generation is null or m.generation <= $6::bigint)',
    replace: '$6::bigint is not null',
    tests: store,
    titled: 'leaves a message of a newer generation, where it has one',
  },
  {
    name: 'least claim: its plan',
    guard: 'The least claim reads its index in order, whatever is believed of the table.',
    file,
    find: ', generate_series((select 1), 1) as once',
    replace: '',
    tests: ['tests/integration/plans.test.ts'],
    titled: 'the least claim looks at no more rows than it may take',
  },
  {
    name: 'least claim: connections',
    guard: 'On another connection the least claim begins anew, as claims do.',
    file: 'runtime/claimer.ts',
    find: `      recall(memory, lane)
      sentAt = clock.now()
      const [asked]`,
    replace: `      sentAt = clock.now()
      const [asked]`,
    tests: claimer,
  },
  {
    name: 'least claim: room',
    guard: 'Where the least claim has left no room, nothing more is claimed.',
    file: 'runtime/engine.ts',
    find: 'if (shouldLook(loop)) await look(loop)',
    replace: 'await look(loop)',
    tests: wakes,
  },
  {
    name: 'least claim: in hand',
    guard: 'What the least claim takes is in hand: its leases are renewed, and a stop waits for it.',
    file: 'runtime/engine.ts',
    find: '  hand.hold(fresh.held)\n',
    replace: '',
    tests: wakes,
  },
  {
    name: 'least claim: ordered queues',
    guard: 'The least claim is not for queues in the order of their keys.',
    file: 'runtime/board.ts',
    find: 'demand?.isOrdered ? null : demand',
    replace: 'demand',
    tests: wakes,
  },
]
