// Commands by chance. One names earlier things by an index, modulo what there is: what is left of a sequence is a sequence again when
// commands are taken out of it, which is how fast-check finds a short one that fails. Few queues, timers and workers, so that things meet.
import fc from 'fast-check'
import { type Ending, hour, type Queue, type Wanted } from './terms.ts'

export type Command =
  | {
      readonly kind: 'publish'
      readonly queue: Queue
      readonly drafts: readonly DraftChoice[]
      readonly conflict: 'keep' | 'replace'
      readonly ending: Ending
    }
  | {
      readonly kind: 'claim'
      readonly worker: number
      readonly wanted: readonly WantedChoice[]
      readonly generation: number | null
    }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'settle'; readonly leases: readonly LeaseChoice[]; readonly write: WriteChoice }
  | { readonly kind: 'cancel'; readonly queue: Queue; readonly timer: string; readonly ending: Ending }
  | {
      readonly kind: 'replay'
      readonly letter: number
      /** Of all that there is: most are not dead. */
      readonly isStray: boolean
      readonly generation: number | null
      readonly delayMs: number
      readonly historyLimit: number
    }
  | { readonly kind: 'crash'; readonly worker: number }

export interface DraftChoice {
  readonly key: string | null
  readonly timer: string | null
  readonly due: DueChoice
  readonly generation: number | null
  /** It has the id of this dead letter, or message when none is dead; null: one of its own. */
  readonly again: number | null
}

export type DueChoice =
  | { readonly kind: 'now' }
  | { readonly kind: 'after'; readonly delayMs: number }
  /** From now; it may have passed. */
  | { readonly kind: 'at'; readonly inMs: number }

export type WantedChoice = Omit<Wanted, 'dueFrom'> & {
  /** How long ago; null: from ever. */
  readonly dueWithinMs: number | null
}

export interface FollowOnChoice extends DraftChoice {
  readonly queue: Queue
  readonly conflict: 'keep' | 'replace'
}

export interface LeaseChoice {
  readonly index: number
  /** One that its worker means to settle, any that was ever given, or the place of one with the token of another. */
  readonly from: 'held' | 'any' | 'foreign'
}

export type WriteChoice =
  | { readonly kind: 'ack'; readonly followOns: readonly FollowOnChoice[] }
  | {
      readonly kind: 'retry' | 'snooze'
      readonly delayMs: number
      readonly error: string | null
      readonly takesNames: boolean
    }
  | { readonly kind: 'release'; readonly takesNames: boolean }
  | { readonly kind: 'bury' | 'quarantine'; readonly hasRun: boolean; readonly error: string | null }
  | { readonly kind: 'extend'; readonly leaseMs: number }

/** The others once in so many times. */
const mostly = <T>(usual: T, times: number, others: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof(
    { withCrossShrink: true },
    { weight: times - 1, arbitrary: fc.constant(usual) },
    { weight: 1, arbitrary: others },
  )

const index = fc.nat(11)
const queue = mostly<Queue>('orders', 4, fc.constant('mails'))
const worker = fc.nat(2)
const timer = mostly('t1', 3, fc.constantFrom('t2', 't3'))
const conflict = fc.constantFrom('keep' as const, 'replace' as const)
const generation = fc.option(fc.nat(3), { freq: 2 })
const error = fc.option(fc.constantFrom('no', 'never'))
const hours = (...chosen: number[]): fc.Arbitrary<number> => fc.constantFrom(...chosen.map((n) => n * hour))
const ending: fc.Arbitrary<Ending> = mostly('alone', 4, fc.constantFrom('commit', 'rollback'))

/** Times that are named lie beside the hours, and so never at the same time as what is due after a delay. */
const beside = hour / 3

const due: fc.Arbitrary<DueChoice> = fc.oneof(
  fc.constant({ kind: 'now' as const }),
  fc.constant({ kind: 'now' as const }),
  hours(1, 2, 4).map((delayMs) => ({ kind: 'after' as const, delayMs })),
  fc.constantFrom(-1, 1, 3).map((n) => ({ kind: 'at' as const, inMs: n * hour + beside })),
)
const draft: fc.Arbitrary<DraftChoice> = fc.record({
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
const publishAgain = publishing(draft.map((one) => ({ ...one, again: 0 })))

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

const lease: fc.Arbitrary<LeaseChoice> = fc.record({
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
const retry: fc.Arbitrary<WriteChoice> = fc.record({ kind: fc.constant('retry' as const), ...later })
const snooze: fc.Arbitrary<WriteChoice> = fc.record({ kind: fc.constant('snooze' as const), ...later })
const release: fc.Arbitrary<WriteChoice> = fc.record({ kind: fc.constant('release' as const), takesNames })
const putBack = fc.oneof(retry, snooze, release)
const extend: fc.Arbitrary<WriteChoice> = fc.record({
  kind: fc.constant('extend' as const),
  leaseMs: hours(1, 4),
})

/** What a worker does, usually: it settles all that it has. */
const handful = Array.from({ length: 6 }, (_, index): LeaseChoice => ({ index, from: 'held' }))
const leases = fc.oneof(fc.array(lease, { minLength: 1, maxLength: 3 }), fc.constant(handful))
const settling = (write: fc.Arbitrary<WriteChoice>): fc.Arbitrary<Command> =>
  fc.record({ kind: fc.constant('settle' as const), leases, write })
const settle = settling(fc.oneof(ack, ack, putBack, putBack, burial, extend))
const bury = settling(burial)

const cancel: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('cancel' as const),
  queue,
  timer,
  ending: fc.constantFrom('alone', 'commit', 'rollback'),
})

const replay: fc.Arbitrary<Command> = fc.record({
  kind: fc.constant('replay' as const),
  letter: index,
  isStray: mostly(false, 10, fc.constant(true)),
  generation,
  delayMs: hours(0, 0, 1),
  historyLimit: mostly(1, 3, fc.constant(2)),
})

const pass: fc.Arbitrary<Command> = hours(1, 2, 4).map((ms) => ({ kind: 'pass', ms }))
const crash: fc.Arbitrary<Command> = worker.map((worker) => ({ kind: 'crash', worker }))

/** One seldom left out at first, and tried without when a sequence fails. */
const together = (weight: number, ...commands: readonly fc.Arbitrary<Command>[]) => ({
  weight,
  arbitrary: fc.tuple(...commands.map((command) => fc.option(command, { freq: 20 }))),
})

/** Commands without any plan would find nothing to claim, to settle or to replay. */
const episode = fc.oneof(
  together(4, publish),
  together(3, publish, claim),
  together(5, settle),
  together(4, claim, settle),
  // A timer that is armed again while it runs.
  together(3, arm, claim, arm, settle),
  together(1, arm, claim, arm, claim, settling(putBack)),
  together(1, publish, claim, bury),
  together(2, publishAgain, claim, bury, replay),
  together(3, bury, replay, claim, bury, replay),
  together(1, replay),
  together(3, cancel),
  together(1, pass, claim),
  together(1, claim, pass, settle),
  // One that fails again, much later.
  together(2, claim, settling(retry), pass, claim, settling(retry)),
  together(2, claim, crash, pass, claim),
)

/** Some twenty commands, seldom more than forty. */
export const sequences: fc.Arbitrary<readonly Command[]> = fc
  .array(episode, { minLength: 1, maxLength: 18, size: 'max' })
  .map((episodes) => episodes.flat().filter((command) => command !== null))
