import { assertOptions, type Shape, wholeNumber } from './core/validate.ts'
import { createRuns } from './runs.ts'
import { type Drained, untilDrained } from './runtime/drain.ts'
import { answers } from './runtime/ping.ts'
import type { Registry, RunnerParts, Running } from './runtime/runner.ts'

export interface RunOptions {
  /** Ends the run: `shutdownSignal('SIGTERM', 'SIGINT')`. Absent: until `stop` is called. */
  readonly signal?: AbortSignal
}

export interface DrainOptions {
  /** When to give up waiting; what runs by then is finished. @default none */
  readonly deadlineMs?: number
}

export interface Health {
  /** Messages are being delivered. */
  readonly ok: boolean
  /** What is wrong; when `ok`, what only makes messages late. */
  readonly reasons: readonly string[]
}

export interface PingOptions {
  /** @default 5_000 */
  readonly timeoutMs?: number
}

export interface Lifecycle {
  /** Starts the subscribers. Twice: the same handle. */
  start(): Promise<Running>
  /** Claims nothing more, gives back what was not started, lets handlers finish, resolves. Never rejects. */
  stop(): Promise<void>
  /** Starts, waits for the signal (or for `stop`), stops. For worker processes. */
  run(options?: RunOptions): Promise<void>
  /** Delivers until nothing is ready any more, then stops (unless it was started by somebody else, too). For cron jobs and functions. */
  drain(options?: DrainOptions): Promise<Drained>
  /** Whether messages are being delivered, as this process sees it: asks nobody. */
  health(): Health
  /** Whether the database answers in time and, once started, the outbox is at work. A database that fails is `false`, not an error. */
  ping(options?: PingOptions): Promise<boolean>
}

/** Starting, stopping and what can be asked in between. The states are those of runs.ts. */
export function createLifecycle(registry: Registry, parts: () => RunnerParts): Lifecycle {
  const runs = createRuns(registry, parts)
  const run = async ({ signal }: RunOptions): Promise<void> => {
    if (signal?.aborted) return
    const { stopped, tell, forget } = runs.untilStopped()
    // Without subscribers nothing else keeps the process: it would end in the middle of this await.
    const alive = setInterval(() => {}, 2 ** 30)
    signal?.addEventListener('abort', tell, { once: true })
    try {
      const running = await runs.keep().handle
      await stopped
      await running.stop()
    } finally {
      clearInterval(alive)
      forget()
      signal?.removeEventListener('abort', tell)
    }
  }
  const drain = async ({ deadlineMs }: DrainOptions): Promise<Drained> => {
    const own = runs.start()
    own.drains++
    const { stopped, tell, forget } = runs.untilStopped()
    const timer = deadlineMs === undefined ? undefined : setTimeout(tell, deadlineMs)
    // What was started for it ends with it, unless somebody else wants it to go on.
    const end = async (): Promise<void> => {
      if (--own.drains === 0 && !own.isKept) await runs.stop(own)
    }
    try {
      return await untilDrained(own.inner, stopped, end)
    } finally {
      clearTimeout(timer)
      forget()
    }
  }
  const health = (): Health => {
    if (runs.current === null)
      return { ok: false, reasons: [runs.isStopping ? 'it is stopping' : 'it is not running'] }
    if (runs.current.runner === null) return { ok: false, reasons: ['it is starting'] }
    const { failing, slowing } = runs.current.runner.troubles
    return { ok: failing.length === 0, reasons: [...failing, ...slowing] }
  }
  const ping = async ({ timeoutMs = 5_000 }: PingOptions): Promise<boolean> => {
    return (!runs.wasStarted || health().ok) && answers(parts().database, timeoutMs)
  }
  return {
    start: () => runs.keep().handle,
    stop: () => runs.stop(),
    run: async (options) => run(checked(options, runShape, 'the options of run')),
    drain: async (options) => drain(checked(options, drainShape, 'the options of drain')),
    health,
    ping: async (options) => ping(checked(options, pingShape, 'the options of ping')),
  }
}

const runShape: Shape = {
  signal: (value) => (value instanceof AbortSignal ? null : 'to be an AbortSignal'),
}
const drainShape: Shape = { deadlineMs: wholeNumber(0, 86_400_000) }
const pingShape: Shape = { timeoutMs: wholeNumber(1, 86_400_000) }

function checked<T extends object>(options: T | undefined, shape: Shape, place: string): Partial<T> {
  assertOptions(options, shape, place)
  return options ?? {}
}
