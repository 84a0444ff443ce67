import type { Executor } from '../adapters/executor.ts'
import type { Lease } from '../core/lease.ts'
import type { Logger } from '../core/log.ts'
import { reconnectDelayMs } from '../core/pacing.ts'
import { settle } from '../core/settlement.ts'
import type { Names } from '../sql/names.ts'
import { createClaimer } from './claimer.ts'
import type { Clock } from './clock.ts'
import { deliver } from './deliver.ts'
import { createSettler } from './settler.ts'
import { createSignals } from './signals.ts'
import type { Subscription } from './subscription.ts'
import { createWaker } from './waker.ts'

export interface ConsumerParts {
  readonly executor: Executor
  readonly names: Names
  readonly clock: Clock
  readonly log: Logger
}

/**
 * One subscription at work: claim a batch, run its handlers together, write what became of each as it ends, look again.
 *
 * Two signals. `halt`: claim nothing more; what is in hand is finished and written, then the promise resolves.
 * `abandon`: handlers must give up; it reaches them as `context.signal`, and none is started any more. A broken database is logged
 * and survived: rows whose settlement was not written stay leased until the lease ends, and are then delivered again.
 */
export async function runConsumer(
  subscription: Subscription,
  parts: ConsumerParts,
  { halt, abandon }: { readonly halt: AbortSignal; readonly abandon: AbortSignal },
): Promise<void> {
  const { clock } = parts
  const log = named(parts.log, subscription.name)
  const claimer = createClaimer(parts.executor, parts.names, subscription)
  const settler = createSettler(parts.executor, parts.names, log)
  const waker = createWaker(subscription.settings.pollMs, clock)
  const signals = createSignals(abandon)
  const run = async (lease: Lease): Promise<void> => {
    const outcome = await signals.during((signal) => deliver(lease, subscription, signal))
    await settler.settle(settle(lease, outcome, Math.random()))
  }
  let failures = 0
  while (!halt.aborted) {
    try {
      const leases = await claimer.claim(subscription.settings.concurrency, halt)
      if (abandon.aborted) return
      await allOf(leases.map(run))
      failures = 0
      if (leases.length > 0) waker.reset()
      else await waker.next(halt)
    } catch (error) {
      const delayMs = Math.round(reconnectDelayMs(++failures, Math.random()))
      const fields = { queue: subscription.queue, delayMs }
      log({ level: 'error', message: 'database failed, trying again', fields, error })
      await clock.sleep(delayMs, halt)
    }
  }
}

/** Waits for all, then fails with the first failure: a new claim must not begin while handlers of the last one run. */
async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const ended = await Promise.allSettled(works)
  for (const end of ended) if (end.status === 'rejected') throw end.reason
}

function named(log: Logger, handler: string): Logger {
  return (entry) => log({ ...entry, fields: { handler, ...entry.fields } })
}
