import type { Draft } from './message.ts'

/** What is left to write of a delivery. */
export type OpenOutcome = Exclude<Outcome, EndedOutcome>

/** What a transaction has ended. */
export type EndedOutcome = Extract<Outcome, { readonly kind: 'committed' | 'unresolved' }>

/** What a delivery came to. A handler's failure is a value; only a broken database is an exception. */
export type Outcome =
  /** Done. `followOns` are written by the statement that deletes the message. */
  | { readonly kind: 'ack'; readonly followOns: readonly Draft[] }
  /**
   * Thrown: the classifier and the retry policy decide. `isShared`: by a handler of many messages, so that it may be the fault of any of
   * them: each is run alone before one is blamed.
   */
  | { readonly kind: 'fail'; readonly error: unknown; readonly isShared: boolean }
  /** The body is not what its queue says: it will never be. */
  | { readonly kind: 'invalid'; readonly error: unknown }
  /** The handler asked for it: the policy still says how often. `afterMs` null: the policy says when, too. */
  | { readonly kind: 'retry'; readonly afterMs: number | null; readonly error: unknown }
  /** The handler does not want it, or must not fail. `isSaid`: in words, and not by an error. */
  | { readonly kind: 'reject'; readonly error: unknown; readonly isSaid: boolean }
  /** Not now: as if it had not been delivered. */
  | { readonly kind: 'snooze'; readonly delayMs: number }
  /** The process stops, and the handler gave up because it was told to. */
  | { readonly kind: 'interrupt' }
  /** A transaction of its handler's has ended it: there is nothing left to write. */
  | { readonly kind: 'committed'; readonly followOns: number }
  /** Nobody can tell whether its transaction has ended, or how: nothing is written. If it is still there, it is delivered again when its lease ends. */
  | { readonly kind: 'unresolved'; readonly mayHaveLanded: boolean }
  /** It was delivered too often without an outcome: its handler is not run any more. */
  | { readonly kind: 'exhausted' }
