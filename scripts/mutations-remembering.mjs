const guards = 'tests/integration/order-guards.test.ts'
const places = 'runtime/order-places.test.ts'

/** Where the next look begins, and when all has been seen. */
export const remembering = [
  {
    name: 'order: what joins is due',
    guard: 'A message whose time has not come is not told to have to join its key.',
    file: 'sql/claim-in-order.ts',
    find: '                          and m.due_at <= now()\n',
    replace: '',
    tests: [guards],
    titled: 'whose time has not come',
  },
  {
    name: 'order: cursor beside settled keys',
    guard: 'Settled keys for which there was no room do not hold the cursor back.',
    file: 'sql/claim-in-order.ts',
    find: 'min(r.seq) filter (where r.is_fresh)',
    replace: 'min(r.seq)',
    tests: [guards],
    titled: 'does not depend on settled keys',
  },
  {
    name: 'order: rounds that have begun',
    guard: 'What was found before a round began does not count as found by it.',
    file: 'runtime/order-memory.ts',
    find: 'place.round.isBegun && wasThere',
    replace: 'wasThere',
    tests: [places],
  },
  {
    name: 'order: rounds see keys and rows',
    guard: 'A round is over when the last key and the last row have been seen.',
    file: 'runtime/order-memory.ts',
    find: '!place.round.hasKeys && !place.round.hasRows',
    replace: '!place.round.hasKeys',
    tests: [places],
  },
  {
    name: 'order: floor of sweeps',
    guard: 'Sweeps begin below every transaction that has not ended, however long it has been running.',
    file: 'runtime/order-memory.ts',
    find: 'horizon: seen.horizon.strict',
    replace: 'horizon: seen.horizon.patient',
    tests: [places],
  },
  {
    name: 'order: places of another server',
    guard: 'What is known of places is forgotten when the server has given less of them out.',
    file: 'runtime/order-memory.ts',
    find: '    forgetPlaces(memory)\n    return null',
    replace: '    return null',
    tests: [places],
  },
]
