import type { Clock } from '../runtime/clock.ts'

/** A clock that stands still until it is moved. It is the process's and the database's at once: milliseconds since 1970. */
export interface TestClock extends Clock {
  /** When the next sleeper wakes; Infinity: nobody sleeps. */
  readonly nextWake: number
  /** How often somebody has lain down: a sign of life. */
  readonly sleeps: number
  /** Wakes, in their order, all whose time has come by then. */
  moveTo(time: number): void
}

interface Sleeper {
  readonly at: number
  wake(): void
}

export function createTestClock(startMs: number): TestClock {
  const sleepers = new Set<Sleeper>()
  let now = startMs
  let sleeps = 0
  const inOrder = (): readonly Sleeper[] => [...sleepers].sort((a, b) => a.at - b.at)
  return {
    now: () => now,
    get sleeps() {
      return sleeps
    },
    get nextWake() {
      return inOrder()[0]?.at ?? Number.POSITIVE_INFINITY
    },
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        sleeps++
        if (signal.aborted || ms <= 0) return resolve()
        const sleeper: Sleeper = {
          at: now + ms,
          wake() {
            sleepers.delete(sleeper)
            signal.removeEventListener('abort', sleeper.wake)
            resolve()
          },
        }
        sleepers.add(sleeper)
        signal.addEventListener('abort', sleeper.wake, { once: true })
      }),
    moveTo(time) {
      now = Math.max(now, time)
      for (const { at, wake } of inOrder()) if (at <= now) wake()
    },
  }
}
