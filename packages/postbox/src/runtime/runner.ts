import type { Database } from '../adapters/executor.ts'
import type { Logger } from '../core/log.ts'
import { type Clock, systemClock } from './clock.ts'
import { type ConsumerParts, runConsumer } from './consumer.ts'
import { assertSchema } from './migrate.ts'
import type { Subscription } from './subscription.ts'

/** An outbox at work. Disposing it stops it: `await using running = await outbox.start()`, inside a function. */
export interface Running extends AsyncDisposable {
  /** Claims nothing more, lets handlers finish, writes what became of them, resolves. Never rejects. */
  stop(): Promise<void>
}

/** The subscriptions of an outbox: those there are, and (while it runs) whom to tell of a new one. */
export interface Registry {
  readonly subscriptions: Subscription[]
  onAdded: ((subscription: Subscription) => void) | null
}

export interface RunnerParts extends Omit<ConsumerParts, 'clock' | 'executor'> {
  readonly executor: Pick<Database, 'run' | 'onIdleError'>
  readonly stopTimeoutMs: number
  /** @default the system's */
  readonly clock?: Clock
}

// How long handlers get after their signal aborted, before stop() no longer waits for them.
const graceMs = 1_000

/** Checks the schema, then starts a consumer for each subscription, those added later included. */
export async function startRunner(registry: Registry, given: RunnerParts): Promise<Running> {
  const parts = { clock: systemClock, ...given }
  await assertSchema(parts.executor, parts.names)
  const halt = new AbortController()
  const abandon = new AbortController()
  const consumers: Promise<void>[] = []
  const begin = (subscription: Subscription): void => {
    consumers.push(runConsumer(subscription, parts, { halt: halt.signal, abandon: abandon.signal }))
  }
  const deafen = parts.executor.onIdleError?.((error) => {
    parts.log({ level: 'warn', message: 'an idle connection broke', fields: {}, error })
  })
  registry.subscriptions.forEach(begin)
  registry.onAdded = begin
  if (consumers.length === 0) warnOfNothing(parts.log)

  const stopAll = async (): Promise<void> => {
    registry.onAdded = null
    halt.abort()
    const finished = Promise.all(consumers).then(() => {
      deafen?.()
      return true
    })
    if (await within(finished, parts.stopTimeoutMs, parts.clock)) return
    abandon.abort(new Error('the outbox stops and the time for handlers is up'))
    if (await within(finished, graceMs, parts.clock)) return
    const fields = { stopTimeoutMs: parts.stopTimeoutMs }
    parts.log({
      level: 'warn',
      message: 'stopped while handlers still run: their messages will be delivered again',
      fields,
    })
  }
  let stopping: Promise<void> | null = null
  const stop = (): Promise<void> => {
    stopping ??= stopAll()
    return stopping
  }
  return { stop, [Symbol.asyncDispose]: stop }
}

/** True when the promise settles in time. The timer is cleared either way, so that a stopped process can end. */
async function within(promise: Promise<boolean>, ms: number, clock: Clock): Promise<boolean> {
  const timer = new AbortController()
  try {
    return await Promise.race([promise, clock.sleep(ms, timer.signal).then(() => false)])
  } finally {
    timer.abort()
  }
}

function warnOfNothing(log: Logger): void {
  log({
    level: 'warn',
    message: 'started without subscribers: call subscribe() before or after start()',
    fields: {},
  })
}
