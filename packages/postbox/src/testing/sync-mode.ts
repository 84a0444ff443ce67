import { since } from '../runtime/drain.ts'
import type { Delivering } from './delivering.ts'
import type { MemoryMessage } from './memory/memory-database.ts'
import { createSyncDelivery, type SyncDeliveryParts } from './sync-delivery.ts'

/** Who publishes runs the handlers, and waits for them. */
export function syncMode(parts: SyncDeliveryParts, stop: () => Promise<void>): Delivering {
  const { memory, clock, registry } = parts
  const delivery = createSyncDelivery(parts)
  const underWay = new Set<Promise<void>>()

  const deliver = async (messages: readonly MemoryMessage[]): Promise<void> => {
    const delivering = delivery.deliver(messages)
    underWay.add(delivering)
    await delivering
    underWay.delete(delivering)
  }
  const subscriptionOf = (queue: string) =>
    registry.subscriptions.find(({ queues }) => queues.includes(queue))
  const due = (): readonly MemoryMessage[] =>
    memory.messages.filter((one) => isDue(one, clock.now()) && subscriptionOf(one.queue) !== undefined)

  return {
    begin: async () => {},
    deliver,
    arrived: delivery.arrived,
    // Handlers are waited for, but for those whose time is limited: theirs may have to pass first.
    async arrive() {
      for (let messages = due(); messages.length > 0; messages = due()) {
        const isLimited = ({ queue }: MemoryMessage) => subscriptionOf(queue)?.settings.timeoutMs !== null
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
      await stop()
    },
  }
}

/** One in quarantine is due never. */
function isDue({ dueAt, leasedUntil }: MemoryMessage, now: number): boolean {
  const isFree = leasedUntil === null || leasedUntil < now
  return isFree && (dueAt ?? now) <= now
}
