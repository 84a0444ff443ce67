// What a command is. It names earlier things by an index, modulo what there is: what is left of a sequence is a sequence again when commands are
// taken out of it, which is how fast-check finds a short one that fails.
import type { Ending, Key, Queue, Wanted, WantedInOrder } from './terms.ts'

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
  | {
      readonly kind: 'claimInOrder'
      readonly worker: number
      readonly wanted: WantedInOrderChoice
      readonly generation: number | null
    }
  | { readonly kind: 'join' }
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
  | { readonly kind: 'resumeKey' | 'skipKey'; readonly key: Key }
  | { readonly kind: 'listKeys'; readonly limit: number }
  | { readonly kind: 'pause' | 'resume'; readonly queue: Queue }
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

export type WantedInOrderChoice = Omit<WantedInOrder, 'dueFrom' | 'ends'> & {
  readonly dueWithinMs: number | null
  /** Look right behind where workers have ended. */
  readonly goesOn: boolean
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
  | {
      readonly kind: 'bury' | 'quarantine' | 'park'
      readonly hasRun: boolean
      readonly error: string | null
    }
  | { readonly kind: 'extend'; readonly leaseMs: number }
  | { readonly kind: 'count' }
