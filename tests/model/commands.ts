// Commands by chance. Few queues, timers and workers, so that things meet.
import fc from 'fast-check'
import type {
  Command,
  DraftChoice,
  DueChoice,
  FollowOnChoice,
  LeaseChoice,
  WantedChoice,
  WriteChoice,
} from './command.ts'
import { type Ending, hour, type Queue } from './terms.ts'

/** The others once in so many times. */
export const mostly = <T>(usual: T, times: number, others: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof(
    { withCrossShrink: true },
    { weight: times - 1, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: others },
  )

const index = fc.nat(11)
const queue = mostly<Queue>('orders', 4, fc.constant('mails'))
export const worker = fc.nat(2)
const timer = mostly('t1', 3, fc.constantFrom('t2', 't3'))
export const conflict = fc.constantFrom('keep' as const, 'replace' as const)
const generation = fc.option(fc.nat(3), { freq: 2 })
export const error = fc.option(fc.constantFrom('no', 'never'))
export const hours = (...chosen: number[]): fc.Arbitrary<number> =>
  fc.constantFrom(...chosen.map((n) => n * hour))
export const ending: fc.Arbitrary<Ending> = mostly('alone', 4, fc.constantFrom('commit', 'rollback'))

/** Times that are named lie beside the hours, and so never at the same time as what is due after a delay. */
export const beside = hour / 3

const due: fc.Arbitrary<DueChoice> = fc.oneof(
  fc.constant({ kind: 'now' as const }),
  fc.constant({ kind: 'now' as const }),
  hours(1, 2, 4).map((delayMs) => ({ kind: 'after' as const, delayMs })),
  fc.constantFrom(-1, 1, 3).map((n) => ({ kind: 'at' as const, inMs: n * hour + beside })),
)
export const draft: fc.Arbitrary<DraftChoice> = fc.record({
  key: fc.option(fc.constantFrom('k1', 'k2')),
  timer: fc.option(timer, { freq: 3 }),
  due,
  generation,
  again: mostly<number | null>(null, 3, index),
})
const followOn: fc.Arbitrary<FollowOnChoice> = fc
  .tuple(draft, queue, conflict)
  .map(([one, queue, conflict]) => ({ ...one, queue, conflict }))

const publishing = (draft: fc.Arbitrary<DraftChoice>): fc.Arbitrary<Command> =>
  fc.record({
    kind: fc.constant('publish' as const),
    queue,
    drafts: fc.oneof(fc.tuple(draft), fc.array(draft, { minLength: 2, maxLength: 4 })),
    conflict,
    ending,
  })
const publish = publishing(draft)
const publishAgain = publishing(draft.map((one) => ({ ...one, again: 0, due: { kind: 'now' } })))

/** Of the name that most others meet. */
const arm: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('publish' as const),
  queue: fc.constant('orders' as const),
  drafts: fc.tuple(draft.map((one): DraftChoice => ({ ...one, timer: 't1', due: { kind: 'now' } }))),
  conflict,
  ending: fc.constant('alone' as const),
})

const wanted: fc.Arbitrary<WantedChoice> = fc.record({
  queue,
  room: fc.integer({ min: 1, max: 4 }),
  leaseMs: hours(1, 2, 3),
  after: mostly(0, 10, index),
  dueWithinMs: mostly<number | null>(
    null,
    10,
    hours(0, 1, 2).map((ms) => ms + 2 * beside),
  ),
  sweep: fc.boolean(),
})

const claim: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('claim' as const),
  worker,
  wanted: fc.uniqueArray(wanted, { minLength: 1, maxLength: 2, selector: (one) => one.queue }),
  generation: mostly<number | null>(null, 3, fc.nat(3)),
})

/** All that there is, by code of any age. */
export const claimAll: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('claim' as const),
  worker,
  wanted: fc.tuple(
    ...(['orders', 'mails'] as const).map((queue) =>
      wanted.map((one) => ({ ...one, queue, room: 4, after: 0, dueWithinMs: null })),
    ),
  ),
  generation: fc.constant(null),
})

export const lease: fc.Arbitrary<LeaseChoice> = fc.record({
  index,
  from: fc.oneof(
    { weight: 4, arbitrary: fc.constant('held' as const) },
    { weight: 3, arbitrary: fc.constant('any' as const) },
    { weight: 1, arbitrary: fc.constant('foreign' as const) },
  ),
})

const takesNames = mostly(true, 5, fc.constant(false))
const burial: fc.Arbitrary<WriteChoice> = fc.record({
  kind: fc.constantFrom('bury' as const, 'bury' as const, 'quarantine' as const),
  hasRun: fc.boolean(),
  error,
})
const ack: fc.Arbitrary<WriteChoice> = fc.record({
  kind: fc.constant('ack' as const),
  followOns: fc.oneof(fc.constant([]), fc.array(followOn, { minLength: 2, maxLength: 5 })),
})
const later = { delayMs: hours(0, 1, 2), error, takesNames }
export const retry: fc.Arbitrary<WriteChoice> = fc.record({ kind: fc.constant('retry' as const), ...later })
const snooze: fc.Arbitrary<WriteChoice> = fc.record({ kind: fc.constant('snooze' as const), ...later })
export const release: fc.Arbitrary<WriteChoice> = fc.record({
  kind: fc.constant('release' as const),
  takesNames,
})
export const putBack = fc.oneof(retry, snooze, release)
const extend: fc.Arbitrary<WriteChoice> = fc.record({
  kind: fc.constant('extend' as const),
  leaseMs: hours(1, 4),
})

const count: fc.Arbitrary<WriteChoice> = fc.constant({ kind: 'count' })

/** What a worker does, usually: it settles all that it has. */
export const handful = Array.from({ length: 6 }, (_, index): LeaseChoice => ({ index, from: 'held' }))
const leases = fc.oneof(fc.array(lease, { minLength: 1, maxLength: 3 }), fc.constant(handful))
/** What a worker that was away too long does. */
const stale = fc.array(
  lease.map((one): LeaseChoice => ({ ...one, from: one.from === 'held' ? 'any' : one.from })),
  { minLength: 1, maxLength: 3 },
)
export const settling = (write: fc.Arbitrary<WriteChoice>, of: fc.Arbitrary<LeaseChoice[]> = leases) =>
  fc.record({ kind: fc.constant('settle' as const), leases: of, write }) satisfies fc.Arbitrary<Command>
export const settle = settling(fc.oneof(ack, ack, putBack, putBack, burial, extend, count))
const bury = settling(burial)
export const buryAll = settling(burial, fc.constant(handful))
/** Follow-ons of the name that most others meet. */
const ackArming = settling(
  fc.record({
    kind: fc.constant('ack' as const),
    followOns: fc.tuple(followOn.map((one) => ({ ...one, queue: 'orders' as const, timer: 't1' }))),
  }),
)

const cancel: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('cancel' as const),
  queue,
  timer,
  ending: fc.constantFrom('alone', 'commit', 'rollback'),
})
const cancelArmed: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('cancel' as const),
  queue: fc.constant('orders' as const),
  timer: fc.constant('t1'),
  ending: fc.constantFrom('alone', 'rollback'),
})

const replay: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('replay' as const),
  letter: index,
  isStray: mostly(false, 5, fc.constant(true)),
  generation,
  delayMs: hours(0, 0, 1),
  historyLimit: mostly(1, 3, fc.constant(2)),
})
export const replayFirst = replay.map((one) => ({ ...one, letter: 0, isStray: false }) as Command)

export const pass: fc.Arbitrary<Command> = hours(1, 2, 4).map((ms) => ({ kind: 'pass', ms }))
export const crash: fc.Arbitrary<Command> = worker.map((worker) => ({ kind: 'crash', worker }))

/** One seldom left out at first, and tried without when a sequence fails. */
export const together = (weight: number, ...commands: readonly fc.Arbitrary<Command>[]) => ({
  weight,
  arbitrary: fc.tuple(...commands.map((command) => fc.option(command, { freq: 20 }))),
})

/** Commands without any plan would find nothing to claim, to settle or to replay. */
export const episode = fc.oneof(
  together(4, publish),
  together(3, publish, claim),
  together(5, settle),
  together(4, claim, settle),
  // A timer that is armed again while it runs.
  together(3, arm, claim, arm, settle),
  together(2, arm, claimAll, arm, claimAll, settling(putBack, fc.constant(handful))),
  together(2, arm, claimAll, arm, ackArming),
  together(1, publish, claim, bury),
  together(3, publishAgain, claimAll, buryAll, replayFirst),
  together(2, bury, replay, claim, bury, replay),
  together(3, buryAll, replayFirst, claimAll, buryAll, replayFirst),
  together(1, replay),
  together(2, cancel),
  together(2, arm, cancelArmed),
  together(1, arm, claimAll, cancelArmed),
  together(3, settling(fc.oneof(snooze, release, extend), stale)),
  together(1, pass, claim),
  together(1, claim, pass, settle),
  // One that fails again, much later.
  together(2, claim, settling(retry), pass, claim, settling(retry)),
  together(2, claim, crash, pass, claim),
  // What a crash has left, given back before and after it was counted.
  together(2, claim, crash, pass, claim, settling(count), settling(putBack), pass, claim),
)
