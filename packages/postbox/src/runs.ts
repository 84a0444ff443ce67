import { type Registry, type Runner, type RunnerParts, type Running, startRunner } from './runtime/runner.ts'

/** From one start to its stop. */
export interface Run {
  readonly inner: Promise<Runner>
  readonly handle: Promise<Running>
  /** null: still starting. */
  runner: Runner | null
  /** Somebody wants it to go on until it is stopped. */
  isKept: boolean
  /** Those who want it to go on until nothing is ready. */
  drains: number
  ended: Promise<void> | null
}

export interface Runs {
  /** The one that is starting or running. */
  readonly current: Run | null
  readonly wasStarted: boolean
  /** One has been stopped, and has not ended yet. */
  readonly isStopping: boolean
  /** Starts, and keeps running until it is stopped. */
  keep(): Run
  /** Starts, for the time of a drain. */
  start(): Run
  /** Stops that one; without one, whichever there is. Never rejects. */
  stop(run?: Run): Promise<void>
  /** Resolves when the outbox is stopped, or when `tell` is called. */
  untilStopped(): { readonly stopped: Promise<void>; tell(): void; forget(): void }
}

/**
 * idle → start() → running → stop() → idle, and round again. Starting twice gives the same handle; stopping twice the same
 * promise; stopping during a start waits for it; starting during a stop begins after it.
 */
export function createRuns(registry: Registry, parts: () => RunnerParts): Runs {
  let current: Run | null = null
  let wasStarted = false
  let ending = 0
  let lastEnded: Promise<void> = Promise.resolve()
  const waiting = new Set<() => void>()

  const stop = (run: Run): Promise<void> => {
    // A start that failed has told its own caller: there is nothing to stop.
    run.ended ??= run.inner.then(
      (running) => running.stop(),
      () => {},
    )
    if (current === run) {
      current = null
      lastEnded = run.ended
      ending++
      void run.ended.then(() => ending--)
      for (const wake of waiting) wake()
    }
    return run.ended
  }
  const start = (): Run => {
    if (current !== null) return current
    const inner = begin(registry, parts, lastEnded)
    const handle = inner.then(() => ({ stop: () => stop(run), [Symbol.asyncDispose]: () => stop(run) }))
    const run: Run = { inner, handle, runner: null, isKept: false, drains: 0, ended: null }
    current = run
    wasStarted = true
    inner.then(
      (runner) => {
        run.runner = runner
      },
      () => {
        if (current === run) current = null
      },
    )
    // Whoever asked hears of a failure by `inner` or by `handle`, and need not wait for both.
    handle.catch(() => {})
    return run
  }
  return {
    get current() {
      return current
    },
    get wasStarted() {
      return wasStarted
    },
    get isStopping() {
      return ending > 0
    },
    start,
    keep() {
      const run = start()
      run.isKept = true
      return run
    },
    stop: (run = current ?? undefined) => (run === undefined ? lastEnded : stop(run)),
    untilStopped() {
      let tell = (): void => {}
      const stopped = new Promise<void>((resolve) => {
        tell = resolve
      })
      waiting.add(tell)
      return { stopped, tell, forget: () => waiting.delete(tell) }
    },
  }
}

async function begin(registry: Registry, parts: () => RunnerParts, after: Promise<void>): Promise<Runner> {
  const given = parts()
  await after
  // Whoever asks finds it running from here on.
  registry.onAdded = () => {}
  try {
    return await startRunner(registry, given)
  } catch (error) {
    registry.onAdded = null
    throw error
  }
}
