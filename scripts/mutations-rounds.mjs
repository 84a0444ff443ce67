const places = ['runtime/order-places.test.ts']
const sweeps = ['runtime/sweeps.test.ts']
const wakes = ['runtime/engine-wakes.test.ts']
const engine = ['runtime/engine-rounds.test.ts']

/** Several queues, some in the order of their keys: what one of them is known for while others go on. */
export const rounds = [
  {
    name: 'order: empty while others go on',
    guard: 'A queue whose round has ended empty is known as empty while longer rounds go on.',
    file: 'runtime/order-memory.ts',
    find: 'return { isOver, isEmpty: place.isEmpty }',
    replace: 'return { isOver, isEmpty: isOver && place.isEmpty }',
    tests: places,
  },
  {
    name: 'order: not empty any more',
    guard: 'A queue that was empty is not when something is found in it, while longer rounds go on.',
    file: 'runtime/order-memory.ts',
    find: '  if (wasThere) place.isEmpty = false\n',
    replace: '',
    tests: places,
  },
  {
    name: 'order: empty before it was asked',
    guard: 'That a queue was empty before a round was asked for is no answer.',
    file: 'runtime/order-memory.ts',
    find: '    beginRound(place)\n    place.isEmpty = false\n',
    replace: '    beginRound(place)\n',
    tests: places,
  },
  {
    name: 'order: sweeping ends with the longest round',
    guard: 'Sweeps are owed until each round has ended once, not until all end with the same sweep.',
    file: 'runtime/sweeps.ts',
    find: 'round ? seen.has(queue) : !isFull',
    replace: 'round ? round.isOver : !isFull',
    tests: sweeps,
  },
  {
    name: 'order: rounds are owed anew',
    guard: 'A round that has ended once does not count for sweeps that are owed later.',
    file: 'runtime/sweeps.ts',
    find: '      if (isComplete) seen.clear()\n',
    replace: '',
    tests: sweeps,
  },
  {
    name: 'order: rounds that were asked for count',
    guard: 'A round that ended before one was asked for does not end what is owed.',
    file: 'runtime/sweeps.ts',
    find: '      if (isRoundDue) seen.clear()\n',
    replace: '',
    tests: sweeps,
  },
  {
    name: 'order: shorter rounds begin anew',
    guard: 'Sweeps that are owed begin at the first key of queues whose rounds were under way again.',
    file: 'runtime/engine.ts',
    find: '.some(({ round }) => round?.isOver === false)) beginRound(loop)',
    replace: '.some(({ round }) => round?.isOver === false)) sweeps.beginRound()',
    tests: engine,
  },
  {
    name: 'order: rounds of queues without room',
    guard: 'A round of a queue that has no room goes on where it was, however often others end theirs.',
    file: 'runtime/engine.ts',
    find: 'isComplete && isOfAll && ',
    replace: 'isComplete && ',
    tests: engine,
  },
  {
    name: 'claims: a failure beside a success is followed up',
    guard:
      'Queues whose claim failed beside one that brought something are looked at again at once, not with the poll.',
    file: 'runtime/engine.ts',
    find: '  if (claimer.belated.isUntold) board.mayAllHaveMore()\n',
    replace: '',
    tests: wakes,
  },
  {
    name: 'claims: a failure before a stop is told',
    guard: 'What failed with the last claim before a stop is told.',
    file: 'runtime/engine.ts',
    find: '      tellBelated(parts)\n',
    replace: '',
    tests: wakes,
  },
  {
    name: 'claims: all failures are told',
    guard: 'Of several failures of one claim none is dropped.',
    file: 'runtime/claiming.ts',
    find: '      if (told.length > 1) throw new AggregateError',
    replace: '      if (told.length > 9) throw new AggregateError',
    tests: ['runtime/claimers.test.ts'],
  },
  {
    name: 'order: a round after a notification',
    guard: 'Who waits until nothing is ready is told by a round that began after the last notification.',
    file: 'runtime/engine.ts',
    find: '      else oweRound()',
    replace: '      else owe()',
    tests: engine,
  },
]
