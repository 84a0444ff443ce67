import type { Executor } from '../adapters/executor.ts'
import type { Lease } from '../core/lease.ts'
import type { Logger } from '../core/log.ts'
import { reconnectDelayMs } from '../core/pacing.ts'
import { type Settlement, settle } from '../core/settlement.ts'
import type { Names } from '../sql/names.ts'
import { createClaimer } from './claimer.ts'
import type { Clock } from './clock.ts'
import { deliver } from './deliver.ts'
import { createSettler } from './settler.ts'
import type { Subscription } from './subscription.ts'
import { createWaker } from './waker.ts'

export interface ConsumerParts {
  readonly executor: Executor
  readonly names: Names
  readonly clock: Clock
  readonly log: Logger
}

/**
 * One subscription at work: claim a batch, run its handlers together, write what became of them, look again.
 *
 * Two signals. `halt`: claim nothing more; what is in hand is finished and written, then the promise resolves.
 * `abandon`: handlers must give up; it reaches them as `context.signal`. A broken database is logged and survived: rows
 * whose settlement was not written stay leased until the lease ends, and are then delivered again.
 */
export async function runConsumer(
  subscription: Subscription,
  parts: ConsumerParts,
  { halt, abandon }: { readonly halt: AbortSignal; readonly abandon: AbortSignal },
): Promise<void> {
  const { executor, names, clock, log } = parts
  const claimer = createClaimer(executor, names, subscription)
  const settler = createSettler(executor, names, log)
  const waker = createWaker(subscription.settings.pollMs, clock)
  let failures = 0
  while (!halt.aborted) {
    try {
      const leases = await claimer.claim(subscription.settings.concurrency)
      await settler.flush(await Promise.all(leases.map((lease) => run(lease, subscription, abandon))))
      failures = 0
      if (leases.length > 0) waker.reset()
      else await waker.next(halt)
    } catch (error) {
      const delayMs = reconnectDelayMs(++failures, Math.random())
      log({
        level: 'error',
        message: 'database failed, trying again',
        fields: { queue: subscription.queue, delayMs },
        error,
      })
      await clock.sleep(delayMs, halt)
    }
  }
}

async function run(lease: Lease, subscription: Subscription, abandon: AbortSignal): Promise<Settlement> {
  return settle(lease, await deliver(lease, subscription, abandon), Math.random())
}
