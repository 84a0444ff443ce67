import type { Entry } from '../core/batching.ts'

/** What goes with a settlement on its way into the table. */
export interface Settling {
  /** How many settlements of its kind one statement may write. */
  readonly maxBatch: number
  /** How long its handler ran; null: it did not. */
  readonly durationMs: number | null
  /** Another of its key waits for it here. @default false */
  readonly isLink?: boolean | undefined
}

/** `refused`: the follow-on messages cannot be inserted, so the message was not deleted either, and must become something else. */
export type Written =
  | { readonly kind: 'over'; readonly landed: boolean }
  | { readonly kind: 'refused'; readonly error: unknown }

/** A settlement on its way into the table. */
export interface Pending extends Entry, Settling {
  refusals: number
  maxBatch: number
  done(written: Written): void
}
