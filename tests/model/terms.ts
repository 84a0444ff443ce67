// The model's words. Messages, claims and drafts are numbered here as they come: what a store calls them is its own affair.

/** All durations are hours: what a store takes to answer is nothing beside them. */
export const hour = 3_600_000

export const queues = ['orders', 'mails', 'accounts'] as const
export type Queue = (typeof queues)[number]

/** The queue whose messages are in the order of their keys. */
export const orderedQueue = 'accounts'

/** A key in that queue. */
export type Key = string

/** What somebody wants to send. */
export interface Draft {
  readonly id: number
  /** Which draft it is: its body and its headers say so. */
  readonly content: number
  readonly queue: Queue
  readonly key: string | null
  readonly timer: string | null
  /** What happens when a timer of that name waits. */
  readonly conflict: 'keep' | 'replace'
  readonly due: Due
  readonly generation: number | null
}

export type Due =
  | { readonly kind: 'now' }
  | { readonly kind: 'after'; readonly delayMs: number }
  | { readonly kind: 'at'; readonly time: number }

/** What a message and a dead letter have in common. */
export interface Letter {
  readonly id: number
  readonly content: number
  readonly queue: Queue
  readonly key: string | null
  readonly createdAt: number
  /** Claims, but for those that were given back or snoozed, and those of suspects that were not counted. */
  readonly deliveries: number
  /** Runs that failed. */
  readonly attempts: number
  readonly firstAttemptAt: number | null
  readonly lastAttemptAt: number | null
  readonly lastError: string | null
  readonly generation: number | null
  readonly history: History | null
}

export interface Message extends Letter {
  /** Its number in the order of all messages. */
  readonly place: number
  /** The name under which it waits. */
  readonly timer: string | null
  /** The name that it gave up when it was claimed. */
  readonly firedTimer: string | null
  /** null: fresh, for whoever comes first. */
  readonly dueAt: number | null
  readonly lease: Lease | null
  /** Dead, but where it was: the quarantine. */
  readonly death: Death | null
  /** Dead, and its key waits until somebody decides. */
  readonly isParked: boolean
  /** It has yet to take its place in its key: it is due later. */
  readonly isToJoin: boolean
  /** The id of the message of its key that died before it. */
  readonly afterDead: number | null
}

export interface DeadLetter extends Letter {
  /** Where it stood when it was a message. */
  readonly place: number
  readonly timer: string | null
  readonly death: Death
}

/** What is kept of a message that was delivered. */
export interface KeptMessage
  extends Pick<Letter, 'id' | 'content' | 'queue' | 'key' | 'attempts' | 'deliveries' | 'generation'> {
  /** Where it stood when it was a message. */
  readonly place: number
  readonly timer: string | null
  /** Those that ended in a replay, as far as they are remembered, and this one. */
  readonly lives: number
}

export interface Lease {
  readonly claim: number
  readonly until: number
}

export interface Death {
  readonly at: number
  readonly reason: string
}

/** The lives that ended in a replay, the newest last. */
export interface History {
  readonly dropped: number
  readonly cycles: readonly Cycle[]
}

export interface Cycle
  extends Pick<
    Letter,
    'attempts' | 'deliveries' | 'firstAttemptAt' | 'lastAttemptAt' | 'lastError' | 'generation'
  > {
  readonly death: Death
  readonly replayedBy: string
  readonly generationAfter: number | null
}

export interface State {
  readonly now: number
  readonly nextPlace: number
  readonly messages: readonly Message[]
  readonly dead: readonly DeadLetter[]
  /** Every lease that a claim ever gave, whether it still holds or not. */
  readonly given: readonly GivenLease[]
  /** The last pause of each queue that is paused, or its end. */
  readonly pauses: ReadonlyMap<Queue, Pause>
  /** The place of the last message of each key that a worker is done with. Nothing of the key comes before it any more. */
  readonly ends: ReadonlyMap<Key, number>
}

export interface Pause {
  readonly isPaused: boolean
  /** Who paused or resumed it. */
  readonly by: string
}

/** The right to settle one message, as its worker remembers it. */
export interface Fence {
  readonly place: number
  readonly claim: number
}

export interface GivenLease extends Fence {
  readonly worker: number
  readonly deliveriesBefore: number
  /** The worker means to settle it: it neither has, nor did it crash. It may have lost it all the same. */
  readonly isInHand: boolean
}

/** On a connection of its own, or in a transaction of the application that ends so. */
export type Ending = 'alone' | 'commit' | 'rollback'

export type Step =
  | {
      readonly kind: 'publish'
      /** Of one queue; those that are timers agree about `conflict`. */
      readonly drafts: readonly Draft[]
      readonly ending: Ending
    }
  | {
      readonly kind: 'claim'
      readonly claim: number
      readonly worker: number
      readonly wanted: readonly Wanted[]
      /** Of the worker's code, for this claim: deployments come and go. null: it takes what there is. */
      readonly generation: number | null
    }
  /** Of the ordered queue. */
  | {
      readonly kind: 'claimInOrder'
      readonly claim: number
      readonly worker: number
      readonly wanted: WantedInOrder
      readonly generation: number | null
      /** What the store has chosen of what may be claimed; empty until it is known. */
      readonly choice: Choice
    }
  /** Messages that are due by now take their places in their keys. */
  | { readonly kind: 'join' }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'settle'; readonly settled: readonly Settled[]; readonly write: Write }
  | {
      readonly kind: 'cancel'
      readonly queue: Queue
      readonly timer: string
      readonly ending: Ending
    }
  | {
      readonly kind: 'replay'
      readonly id: number
      readonly by: string
      readonly generation: number | null
      readonly delayMs: number
      /** How many lives it remembers; older ones are counted. */
      readonly historyLimit: number
    }
  /** What operators do to a key. */
  | { readonly kind: 'resumeKey' | 'skipKey'; readonly key: Key; readonly by: string }
  /** All pages, of so many keys each. */
  | { readonly kind: 'listKeys'; readonly limit: number }
  | { readonly kind: 'pause' | 'resume'; readonly queue: Queue; readonly by: string }
  | { readonly kind: 'crash'; readonly worker: number }

/** What a claim asks of one queue. */
export interface Wanted {
  readonly queue: Queue
  readonly room: number
  readonly leaseMs: number
  /** Fresh messages behind this place. */
  readonly after: number
  /** Due ones from this time on; null: all of them. */
  readonly dueFrom: number | null
  readonly sweep: boolean
}

/** The same of the ordered queue, where a claim has more ways to find what is first in its key. */
export interface WantedInOrder extends Omit<Wanted, 'queue' | 'sweep'> {
  /** Look right behind these, the last messages of their keys that workers are done with. */
  readonly ends: readonly KeyEnd[]
  /** Look at the first of every key behind this one; null: do not. */
  readonly keysFrom: Key | null
}

export interface KeyEnd {
  readonly key: Key
  readonly place: number
}

/** What a store may decide by itself when it claims. */
export interface Choice {
  readonly places: readonly number[]
  /** Up to which place it has looked at what is fresh, and need not look again; null: it says nothing. */
  readonly passed: number | null
  /** Of the keys behind whose ends it was to look: those that it has to be asked for again. */
  readonly leftKeys: readonly Key[]
  /** Some have to take their places in their keys. */
  readonly isJoinDue: boolean
}

/** A message that is settled, and what its handler published. */
export interface Settled extends Fence {
  readonly followOns: readonly Draft[]
}

/** What becomes of the messages of one statement; `takesNames`: timers take their names back. */
export type Write =
  | { readonly kind: 'ack' }
  | {
      readonly kind: 'retry'
      readonly delayMs: number
      readonly error: string | null
      readonly takesNames: boolean
    }
  | { readonly kind: 'snooze'; readonly delayMs: number; readonly takesNames: boolean }
  | { readonly kind: 'release'; readonly takesNames: boolean }
  /** `hasRun`: it failed once more; else it was never run to its end. */
  | {
      readonly kind: 'bury' | 'quarantine' | 'park'
      readonly reason: string
      readonly error: string | null
      readonly hasRun: boolean
    }
  | { readonly kind: 'extend'; readonly leaseMs: number }
  /** About to be run, alone. */
  | { readonly kind: 'count' }

export type Answer =
  | { readonly kind: 'published'; readonly receipts: readonly (Receipt | null)[] }
  | { readonly kind: 'claimed'; readonly found: readonly Found[] }
  /** The places that were written: what is missing had lost its lease. */
  | { readonly kind: 'settled'; readonly places: readonly number[] }
  | { readonly kind: 'cancelled'; readonly isCancelled: boolean }
  | { readonly kind: 'claimedInOrder'; readonly found: FoundInOrder; readonly choice: Choice }
  /** A store must not have chosen what it has. */
  | { readonly kind: 'wrong'; readonly because: string }
  | { readonly kind: 'joined'; readonly count: number }
  | {
      readonly kind: 'replayed'
      readonly result: 'replayed' | 'not_found' | 'timer_conflict'
      readonly lands: Landing | null
    }
  /** The message that was parked; null: none was. */
  | { readonly kind: 'decided'; readonly id: number | null }
  | { readonly kind: 'keys'; readonly keys: readonly BlockedKey[] }
  /** Whether it was changed; if not, who was first. */
  | { readonly kind: 'paused'; readonly isChanged: boolean; readonly by: string | null }
  | { readonly kind: 'nothing' }

/** Where a dead letter comes back: before those that it kept waiting, behind all of its key, or wherever, since nothing is in order. */
export type Landing = 'in_place' | 'behind_key' | 'anywhere'

/** A key whose first message keeps the others waiting. */
export interface BlockedKey {
  readonly key: Key
  readonly state: 'parked' | 'retrying'
  readonly head: Pick<Letter, 'id' | 'attempts'> & {
    readonly place: number
    readonly reason: string | null
    readonly error: string | null
    readonly since: number | null
    readonly dueAt: number | null
  }
  readonly waiting: number
}

export interface Receipt {
  readonly id: number
  /** null: it was rolled back, and stands nowhere. */
  readonly place: number | null
}

/** What a claim got of one queue. Times are whole hours from now. */
export interface Found {
  readonly queue: Queue
  readonly messages: readonly Delivered[]
  /** When the next message is due; null: none waits. */
  readonly nextDue: number | null
  /** The first fresh message behind the place that was asked for, leased or not. */
  readonly lowest: number | null
  /** Of a paused queue nothing else is told. */
  readonly isPaused: boolean
}

export interface FoundInOrder extends Pick<Found, 'nextDue' | 'isPaused'> {
  /** By place. */
  readonly messages: readonly DeliveredInOrder[]
}

export interface Delivered {
  readonly place: number
  readonly id: number
  readonly content: number
  readonly key: string | null
  readonly timer: string | null
  readonly attempts: number
  readonly deliveries: number
  readonly isSuspect: boolean
  readonly generation: number | null
  readonly createdAt: number
  readonly dueAt: number | null
  readonly firstAttemptAt: number | null
}

export interface DeliveredInOrder extends Delivered {
  readonly afterDead: number | null
}

/** A time as two stores can agree on it; `Infinity` is never. */
export function hoursFrom(now: number, time: number): number
export function hoursFrom(now: number, time: number | null): number | null
export function hoursFrom(now: number, time: number | null): number | null {
  // Not -0, which would be another number than 0.
  return time === null ? null : Math.round((time - now) / hour) + 0
}
