import type { Clock } from './clock.ts'

/** When the next look should be a sweep: at most a twentieth of the time goes into them. */
export interface Sweeps {
  /** Something may lie below the cursors: sweep as soon as it is allowed, and before sleeping. */
  owe(): void
  readonly isOwed: boolean
  isAllowed(): boolean
  /** From when on one that is owed is allowed. */
  allowedAt(): number
  /** The next look should be one: it is owed, or the last was a second ago. */
  isDue(): boolean
  /** A sweep is about to be sent: what is owed from now on, it may not see. */
  begin(): void
  /** It has ended. It is still owed when it came back full: it has not seen everything. */
  end(isComplete: boolean): void
}

const everyMs = 1_000
const share = 20
// One that took seconds, because the server was busy, must not forbid them for minutes.
const longestRestMs = 30_000

export function createSweeps(clock: Clock, last: { readonly sweepMs: number }): Sweeps {
  let isOwed = true
  let endedAt = Number.NEGATIVE_INFINITY
  const restMs = (): number => Math.min(longestRestMs, share * last.sweepMs)
  const isAllowed = (): boolean => clock.now() >= endedAt + restMs()
  return {
    owe() {
      isOwed = true
    },
    get isOwed() {
      return isOwed
    },
    isAllowed,
    allowedAt: () => endedAt + restMs(),
    isDue: () => (isOwed && isAllowed()) || clock.now() >= endedAt + Math.max(everyMs, restMs()),
    begin() {
      isOwed = false
    },
    end(isComplete) {
      endedAt = clock.now()
      isOwed ||= !isComplete
    },
  }
}
