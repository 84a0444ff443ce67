import type { Lease } from '../core/lease.ts'

/** A lease in hand, from its claim until what became of it is written. */
export interface Held {
  readonly lease: Lease
  readonly leaseMs: number
  /** When its claim was sent, on the local clock. */
  readonly sentAt: number
  /**
   * When the lease ends, on the local clock: counted from when the claim (or the last renewal) was *sent*, so it is never later than
   * the end that the database stored.
   */
  deadline: number
  /** What became of it is on its way into the table: whether the lease still holds is told by that write. */
  isEnding: boolean
  /** Somebody else may have it now: nothing is written for it any more. */
  isLost: boolean
  /** Its row is locked by a transaction of its handler's, which keeps it better than a lease does. */
  isFenced: boolean
  /** Aborts its handler's signal; before the handler starts, and after it ended, nothing. */
  abort(reason: unknown): void
  /** Another of its key waits for it here. */
  isLink: boolean
  /** It is in nobody's hand any more: see `atOver`. */
  over: ((fate: Fate) => void) | undefined
}

/**
 * What became of a message, as the next one of its key sees it. `gone`: nothing stands before that any more. `skipped`: the same, and it has been noted there. `kept`: it
 * goes back, or holds its key though it is dead. `lost`: nobody knows: it is somebody else's, or gone, and that was not heard.
 */
export type Fate = 'gone' | 'skipped' | 'kept' | 'lost'

const nothing = (): void => {}

export function heldOf(lease: Lease, leaseMs: number, sentAt: number): Held {
  return {
    lease,
    leaseMs,
    sentAt,
    deadline: sentAt + leaseMs,
    isEnding: false,
    isLost: false,
    isFenced: false,
    isLink: false,
    abort: nothing,
    over: undefined,
  }
}

/** A time of the local clock, by the database's: as long after the claim here as there. */
export function databaseTime({ lease, sentAt }: Held, now: number): Date {
  return new Date(lease.claimedAt.getTime() + Math.max(0, now - sentAt))
}

/** Tells what became of it, when that is written, or it is lost. */
export function atOver(held: Held, tell: (fate: Fate) => void): void {
  const { over } = held
  held.over =
    over === undefined
      ? tell
      : (fate) => {
          over(fate)
          tell(fate)
        }
}

/** Resolves when what became of it is written, or it is lost. */
export function untilOver(held: Held): Promise<Fate> {
  return new Promise((resolve) => atOver(held, resolve))
}
