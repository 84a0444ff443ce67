// Path 6/7 · settle: lease + outcome → what the row will become. Pure.
import { describeError } from './describe-error.ts'
import type { Lease } from './lease.ts'
import type { Outcome } from './outcome.ts'
import { backoffMs } from './retry.ts'
import { unreachable } from './unreachable.ts'

/** What the row will become; the only input of a flush. `error` is stored, `thrown` is for the log. */
export type Settlement =
  | { readonly write: 'delete'; readonly lease: Lease }
  | {
      readonly write: 'reschedule'
      readonly lease: Lease
      readonly delayMs: number
      readonly error: string
      readonly thrown: unknown
    }
  | {
      readonly write: 'bury'
      readonly lease: Lease
      readonly reason: string
      readonly error: string
      readonly thrown: unknown
    }
  /** Claimed and never started: as if it had not been claimed. */
  | { readonly write: 'release'; readonly lease: Lease }

/** `random` in [0, 1) spreads the retries. */
export function settle(lease: Lease, outcome: Outcome, random: number): Settlement {
  switch (outcome.kind) {
    case 'ack':
      return { write: 'delete', lease }
    case 'fail':
      return {
        write: 'reschedule',
        lease,
        delayMs: backoffMs(lease.attempt, random),
        error: describeError(outcome.error),
        thrown: outcome.error,
      }
    default:
      return unreachable(outcome)
  }
}
