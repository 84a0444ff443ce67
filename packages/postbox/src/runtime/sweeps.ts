import type { Found } from './claim-answer.ts'
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
  /** The next sweep begins the rounds of all queues: what ended before counts for nothing. */
  beginRound(): void
  /**
   * It has ended. It is still owed where it failed (null), where it came back full, and until the round of each queue has ended once: they differ in
   * length, and would have to be waited for long if all had to end with the same sweep. True: it is complete.
   */
  end(found: readonly Swept[] | null): boolean
}

type Swept = Pick<Found, 'queue' | 'isFull' | 'round'>

const everyMs = 1_000
const share = 20
// One that took seconds, because the server was busy, must not forbid them for minutes.
const longestRestMs = 30_000

export function createSweeps(clock: Clock, last: { readonly sweepMs: number }): Sweeps {
  let isOwed = true
  let isRoundDue = false
  let endedAt = Number.NEGATIVE_INFINITY
  // Queues whose rounds have ended since the last sweep that was not owed any more.
  const seen = new Set<string>()
  const isSeen = ({ queue, isFull, round }: Swept): boolean => (round ? seen.has(queue) : !isFull)
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
      if (isRoundDue) seen.clear()
      isRoundDue = false
    },
    beginRound() {
      isRoundDue = true
    },
    end(found) {
      endedAt = clock.now()
      for (const { queue, round } of found ?? []) if (round?.isOver) seen.add(queue)
      const isComplete = found?.every(isSeen) ?? false
      if (isComplete) seen.clear()
      isOwed ||= !isComplete
      return isComplete
    },
  }
}
