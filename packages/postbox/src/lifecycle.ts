import { assertOptions } from './core/validate.ts'
import type { Registry, RunnerParts, Running } from './runtime/runner.ts'

export interface RunOptions {
  /** Ends the run: `shutdownSignal('SIGTERM', 'SIGINT')`. Absent: until `stop` is called. */
  readonly signal?: AbortSignal
}

export interface Lifecycle {
  /** Starts the subscribers. Twice: the same handle. */
  start(): Promise<Running>
  /** Claims nothing more, lets handlers finish, resolves. Never rejects. */
  stop(): Promise<void>
  /** Starts, waits for the signal (or for `stop`), stops. For worker processes. */
  run(options?: RunOptions): Promise<void>
}

/** From one start to its stop. */
interface Run {
  readonly inner: Promise<Running>
  readonly handle: Promise<Running>
  ended: Promise<void> | null
}

/**
 * idle → start() → running → stop() → idle, and round again. Starting twice gives the same handle; stopping twice the same
 * promise; stopping during a start waits for it; starting during a stop begins after it. The runtime is imported when it is
 * first needed, so that a service that only publishes does not carry it.
 */
export function createLifecycle(registry: Registry, parts: () => RunnerParts): Lifecycle {
  let current: Run | null = null
  let lastEnded: Promise<void> = Promise.resolve()
  const waiting = new Set<() => void>()

  const stopRun = (run: Run): Promise<void> => {
    // A start that failed has told its own caller: there is nothing to stop.
    run.ended ??= run.inner.then(
      (running) => running.stop(),
      () => {},
    )
    if (current === run) {
      current = null
      lastEnded = run.ended
      for (const wake of waiting) wake()
    }
    return run.ended
  }
  const start = (): Promise<Running> => {
    if (current !== null) return current.handle
    const inner = begin(registry, parts, lastEnded)
    const handle = inner.then(() => ({ stop: () => stopRun(run), [Symbol.asyncDispose]: () => stopRun(run) }))
    const run: Run = { inner, handle, ended: null }
    current = run
    inner.catch(() => {
      if (current === run) current = null
    })
    return handle
  }
  const stop = (): Promise<void> => (current === null ? lastEnded : stopRun(current))
  const run = async ({ signal }: RunOptions = {}): Promise<void> => {
    if (signal?.aborted) return
    let tell = (): void => {}
    const told = new Promise<void>((resolve) => {
      tell = resolve
    })
    waiting.add(tell)
    // Without subscribers nothing else keeps the process: it would end in the middle of this await.
    const alive = setInterval(() => {}, 2 ** 30)
    signal?.addEventListener('abort', tell, { once: true })
    try {
      const running = await start()
      await told
      await running.stop()
    } finally {
      clearInterval(alive)
      waiting.delete(tell)
      signal?.removeEventListener('abort', tell)
    }
  }
  return { start, stop, run: async (options) => run(checkedRunOptions(options)) }
}

async function begin(registry: Registry, parts: () => RunnerParts, after: Promise<void>): Promise<Running> {
  const given = parts()
  await after
  const { startRunner } = await import('./runtime/runner.ts')
  return startRunner(registry, given)
}

function checkedRunOptions(options: RunOptions | undefined): RunOptions {
  assertOptions(
    options,
    { signal: (value) => (value instanceof AbortSignal ? null : 'to be an AbortSignal') },
    'the options of run',
  )
  return options ?? {}
}
