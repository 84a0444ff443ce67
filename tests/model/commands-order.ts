// Commands about the order of keys, and about pauses. Two keys, and most things happen to the first.
import fc from 'fast-check'
import type { Command, DraftChoice, FollowOnChoice, WantedInOrderChoice, WriteChoice } from './command.ts'
import {
  beside,
  buryAll,
  claimAll,
  conflict,
  crash,
  draft,
  ending,
  error,
  handful,
  hours,
  lease,
  mostly,
  pass,
  putBack,
  release,
  replayFirst,
  retry,
  settle,
  settling,
  together,
  worker,
} from './commands.ts'
import { type Key, orderedQueue, type Queue, queues } from './terms.ts'

const key = mostly<Key>('k1', 3, fc.constant('k2'))
const draftInOrder: fc.Arbitrary<DraftChoice> = fc
  .tuple(draft, fc.option(key, { freq: 8 }), fc.nat(3))
  .map(([one, key, chance]) => ({
    ...one,
    key,
    ...(chance === 0 ? {} : { timer: null, due: { kind: 'now' } }),
  }))
const publishing = (drafts: fc.Arbitrary<DraftChoice[]>, clash = conflict): fc.Arbitrary<Command> =>
  fc.record({
    kind: fc.constant('publish' as const),
    queue: fc.constant(orderedQueue),
    drafts,
    conflict: clash,
    ending,
  })
const publish = publishing(fc.array(draftInOrder, { minLength: 1, maxLength: 4 }))
/** Some that wait for each other. */
const publishLine = publishing(
  fc.array(
    draftInOrder.map((one): DraftChoice => ({ ...one, key: 'k1', timer: null, due: { kind: 'now' } })),
    { minLength: 2, maxLength: 4 },
  ),
)
/** Two lines of two. */
const publishLines = publishing(
  fc.tuple(
    ...['k1', 'k2', 'k1', 'k2'].map((key) =>
      draftInOrder.map((one): DraftChoice => ({ ...one, key, timer: null, due: { kind: 'now' } })),
    ),
  ),
)
/** One that takes its place later, and may be armed again. */
const arm = publishing(
  fc.tuple(
    fc.tuple(draftInOrder, hours(1, 2), fc.boolean()).map(([one, delayMs, isTimer]): DraftChoice => {
      return { ...one, timer: isTimer ? 't1' : null, due: { kind: 'after', delayMs } }
    }),
  ),
)
const armNow = publishing(
  fc.tuple(draftInOrder.map((one): DraftChoice => ({ ...one, timer: 't1', due: { kind: 'now' } }))),
)

/** A timer that stands in line behind the others, by its name. */
const armInLine = publishing(
  fc.tuple(
    draftInOrder.map((one): DraftChoice => ({ ...one, key: 'k1', timer: 't1', due: { kind: 'now' } })),
  ),
  fc.constant('keep'),
)
const armAgain = publishing(
  fc.tuple(
    fc
      .tuple(draftInOrder, fc.constantFrom(null, 'k1'))
      .map(([one, key]): DraftChoice => ({ ...one, key, timer: 't1' })),
  ),
  fc.constant('replace'),
)

const wanted: fc.Arbitrary<WantedInOrderChoice> = fc.record({
  room: fc.integer({ min: 1, max: 5 }),
  leaseMs: hours(1, 2, 3),
  after: mostly(0, 3, fc.nat(30)),
  dueWithinMs: mostly<number | null>(
    null,
    4,
    hours(0, 1, 2).map((ms) => ms + 2 * beside),
  ),
  goesOn: fc.boolean(),
  keysFrom: fc.constantFrom('', null, 'k1'),
})
const claiming = (wanted: fc.Arbitrary<WantedInOrderChoice>): fc.Arbitrary<Command> =>
  fc.record({
    kind: fc.constant('claimInOrder' as const),
    worker,
    wanted,
    generation: mostly<number | null>(null, 4, fc.nat(3)),
  })
const claim = claiming(wanted)
/** All that there is. */
const everything = { room: 8, after: 0, dueWithinMs: null, keysFrom: '' } as const
const claimLine = claiming(wanted.map((one) => ({ ...one, ...everything }))).map(
  (one): Command => (one.kind === 'claimInOrder' ? { ...one, generation: null } : one),
)
/** As a worker does that goes on with its keys, and with nothing else. */
const claimNext = claiming(wanted.map((one) => ({ ...one, after: 1_000, goesOn: true, keysFrom: null })))
const claimOne = claiming(wanted.map((one) => ({ ...one, room: 1, goesOn: true })))
const join: fc.Arbitrary<Command> = fc.constant({ kind: 'join' })

const ack: fc.Arbitrary<WriteChoice> = fc.record({
  kind: fc.constant('ack' as const),
  followOns: mostly<readonly FollowOnChoice[]>(
    [],
    3,
    fc.tuple(draftInOrder, conflict).map(([one, conflict]) => [{ ...one, conflict, queue: orderedQueue }]),
  ),
})
const all = fc.constant(handful)
const ackAll = settling(ack, all)
const parking: fc.Arbitrary<WriteChoice> = fc.record({
  kind: fc.constant('park' as const),
  hasRun: fc.boolean(),
  error,
})
const park = settling(parking, all)
const parkSome = settling(parking, fc.array(lease, { minLength: 1, maxLength: 3 }))
const releaseSome = settling(release, fc.array(lease, { minLength: 1, maxLength: 2 }))

const decide = (kinds: readonly ('resumeKey' | 'skipKey')[]): fc.Arbitrary<Command> =>
  fc.record({ kind: fc.constantFrom(...kinds), key })
const resumeKey = decide(['resumeKey'])
const resumeFirst: fc.Arbitrary<Command> = fc.constant({ kind: 'resumeKey', key: 'k1' })
const skipKey = decide(['skipKey'])
const listKeys: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('listKeys' as const),
  limit: fc.constantFrom(1, 50),
})
const cancelArmed: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('cancel' as const),
  queue: fc.constant(orderedQueue),
  timer: fc.constant('t1'),
  ending,
})

const pausing = (kind: 'pause' | 'resume', queue: fc.Arbitrary<Queue>): fc.Arbitrary<Command> =>
  queue.map((queue) => ({ kind, queue }))
const anyQueue = fc.constantFrom(...queues)
const ordered = fc.constant(orderedQueue)
const resume = pausing('resume', anyQueue)
const pause = pausing('pause', ordered)

export const episodeInOrder = fc.oneof(
  together(3, publish, claim),
  together(3, claim, settle),
  // A worker that goes on with a key.
  together(3, publishLine, claim, ackAll, claimNext),
  together(2, publishLine, claimLine, ackAll, ackAll, claimNext),
  together(2, publishLines, claimLine, ackAll, settling(release, all), claimOne, claimNext),
  together(3, publishLine, claimLine, park, listKeys, fc.oneof(resumeKey, skipKey), claimLine),
  together(2, publishLine, claimLine, park, replayFirst, claimLine),
  together(1, publish, claim, parkSome),
  together(4, armInLine, claimLine, park, armNow, resumeFirst),
  together(3, armInLine, claimLine, park, armNow, replayFirst),
  together(3, publishLine, claimLine, buryAll, claimLine),
  together(2, publishLine, claim, buryAll, replayFirst, join, claimLine),
  together(2, publishLine, claimLine, park, skipKey, replayFirst, claimLine),
  // What is due later.
  together(2, arm, publishLine, pass, claim, join, claimLine),
  together(2, arm, pass, join, fc.oneof(arm, cancelArmed), claimLine),
  together(1, armNow, claim, join, armNow),
  together(2, armInLine, cancelArmed),
  // The next of a key is told who died before it, and goes elsewhere.
  together(2, publishLine, claimLine, armInLine, buryAll, buryAll, buryAll, armAgain, claimLine),
  together(1, join),
  together(2, publishLine, claimLine, settling(retry, all), listKeys, claim, pass, claim),
  together(2, publishLine, claimLine, crash, pass, claim, settling(putBack, all)),
  together(2, publishLine, claimLine, releaseSome, ackAll, claim),
  together(1, listKeys),
  together(1, resumeKey),
  together(2, pause, publish, claim, arm, pass, pausing('resume', ordered), claim, join),
  together(2, publishLine, claimLine, pause, ackAll, claim, pausing('resume', ordered), claimNext),
  together(1, pausing('pause', anyQueue), claimAll, claim, settle, resume, resume),
  together(2, pause, pause, claim, pausing('resume', ordered)),
  together(3, resume),
)
