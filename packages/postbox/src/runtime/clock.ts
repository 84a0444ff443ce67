export interface Clock {
  /** Milliseconds of a clock that only goes forward. Never stored: what is stored comes from the database's clock. */
  now(): number
  /** Resolves after `ms`, or at once when the signal aborts. Never rejects: being woken is not a failure. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Calls back in the next turn of the event loop. Absent: time stands still, and turns are not counted. */
  nextTurn?(callback: () => void): void
}

// As it was when this was loaded: tests put one in its place that waits for them.
const inNextTurn = setImmediate

export const systemClock: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve()
      const done = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal.addEventListener('abort', done, { once: true })
    }),
  nextTurn: (callback) => void inNextTurn(callback),
}
