import type { Lease } from '../core/lease.ts'

/** A lease in hand, from its claim until what became of it is written. */
export interface Held {
  readonly lease: Lease
  readonly leaseMs: number
  /**
   * When the lease ends, on the local clock: counted from when the claim (or the last renewal) was *sent*, so it is never later than
   * the end that the database stored.
   */
  deadline: number
  /** Somebody else may have it now: nothing is written for it any more. */
  isLost: boolean
  /** Aborts its handler's signal; before the handler starts, and after it ended, nothing. */
  abort(reason: unknown): void
}

export function heldOf(lease: Lease, leaseMs: number, sentAt: number): Held {
  return { lease, leaseMs, deadline: sentAt + leaseMs, isLost: false, abort: () => {} }
}
