import { mayRun } from '../core/generation.ts'
import { since } from '../runtime/drain.ts'
import { registerOrders } from '../runtime/register-orders.ts'
import type { Delivering } from './delivering.ts'
import type { MemoryMessage } from './memory/memory-database.ts'
import { createSyncDelivery, type SyncDeliveryParts, subscriptionOf } from './sync-delivery.ts'

// As long as a stop waits for handlers that were told to give up. By the clock, which nobody moves before they had time.
const patienceMs = 1_000

/** Who publishes runs the handlers, and waits for them. */
export function syncMode(parts: SyncDeliveryParts, stop: () => Promise<void>): Delivering {
  const { memory, clock, registry, runner } = parts
  const delivery = createSyncDelivery(parts)
  const underWay = new Set<Promise<void>>()

  const deliver = async (messages: readonly MemoryMessage[]): Promise<void> => {
    const delivering = delivery.deliver(messages)
    underWay.add(delivering)
    await delivering
    underWay.delete(delivering)
  }
  const due = (): readonly MemoryMessage[] =>
    memory.free.filter(
      (message) =>
        (message.dueAt ?? 0) <= clock.now() &&
        subscriptionOf(registry, message.queue) !== undefined &&
        !delivery.isBlocked(message) &&
        mayRun(runner.generation, message),
    )

  return {
    begin: () => registerOrders(memory, runner.names, { map: runner.queues, served: [] }),
    deliver,
    arrived: delivery.arrived,
    // Handlers are waited for, but for those whose time is limited: theirs may have to pass first.
    async arrive() {
      for (let messages = due(); messages.length > 0; messages = due()) {
        const isLimited = ({ queue }: MemoryMessage) =>
          subscriptionOf(registry, queue)?.settings.timeoutMs !== null
        void deliver(messages.filter(isLimited))
        await deliver(messages.filter((one) => !isLimited(one)))
      }
    },
    async drain() {
      const before = { ...delivery.settled }
      for (let messages = due(); messages.length + underWay.size > 0; messages = due())
        await Promise.all([...underWay, deliver(messages)])
      return { ...since(before, delivery.settled), isEmpty: true }
    },
    async end() {
      delivery.close()
      const patience = clock.sleep(patienceMs, new AbortController().signal)
      await Promise.race([Promise.all(underWay), patience])
      await stop()
    },
  }
}
