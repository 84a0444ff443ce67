import type { Clock } from '../../packages/postbox/src/runtime/clock.ts'
import { heartbeatMs } from '../../packages/postbox/src/runtime/listener.ts'

/** A clock that stands still until it is moved, and remembers what was asked of it. */
export interface FakeClock extends Clock {
  /** Every sleep that was asked for, in milliseconds, oldest first. */
  readonly asked: readonly number[]
  /** How much is left of each sleep that lasts, shortest first. */
  readonly left: readonly number[]
  /** What was asked of each sleep that lasts, in the same order. */
  readonly lasting: readonly number[]
  /** Ends every sleep whose time has come by then, earliest first. */
  advance(ms: number): void
}

/**
 * The heartbeat of an outbox has heard its word, and rests. To count sleeps is not enough: while it waits for the word it sleeps, too, and who lets
 * that time pass tells the outbox that nobody hears.
 */
export const hasHeard = ({ lasting }: FakeClock): boolean => lasting.includes(heartbeatMs)

/** The three loops of an outbox that listens sleep, and nothing is under way: engine, lease keeper and heartbeat. */
export const loopsSleep = (clock: FakeClock): boolean => clock.lasting.length === 3 && hasHeard(clock)

interface Sleep {
  readonly ms: number
  readonly at: number
  readonly end: () => void
}

export function fakeClock(): FakeClock {
  const asked: number[] = []
  const sleeps = new Set<Sleep>()
  let now = 0
  const inOrder = (): Sleep[] => [...sleeps].sort((a, b) => a.at - b.at)
  return {
    asked,
    get left() {
      return inOrder().map(({ at }) => at - now)
    },
    get lasting() {
      return inOrder().map(({ ms }) => ms)
    },
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        asked.push(ms)
        if (signal.aborted) return resolve()
        const end = (): void => {
          sleeps.delete(sleep)
          signal.removeEventListener('abort', end)
          resolve()
        }
        const sleep: Sleep = { ms, at: now + ms, end }
        sleeps.add(sleep)
        signal.addEventListener('abort', end, { once: true })
      }),
    advance(ms) {
      now += ms
      for (const { at, end } of inOrder()) if (at <= now) end()
    },
  }
}
