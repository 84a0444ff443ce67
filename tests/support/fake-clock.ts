import type { Clock } from '../../packages/postbox/src/runtime/clock.ts'

/** A clock that stands still until it is moved, and remembers what was asked of it. */
export interface FakeClock extends Clock {
  /** Every sleep that was asked for, in milliseconds, oldest first. */
  readonly asked: readonly number[]
  /** How much is left of each sleep that lasts, shortest first. */
  readonly left: readonly number[]
  /** Ends every sleep whose time has come by then, earliest first. */
  advance(ms: number): void
}

interface Sleep {
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
        const sleep: Sleep = { at: now + ms, end }
        sleeps.add(sleep)
        signal.addEventListener('abort', end, { once: true })
      }),
    advance(ms) {
      now += ms
      for (const { at, end } of inOrder()) if (at <= now) end()
    },
  }
}
