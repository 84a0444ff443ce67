import type { Handler } from './core/handler.ts'
import type { BodiesOf, QueueMap } from './core/queues.ts'
import { resolveSubscribeOptions, type SubscribeOptions } from './core/subscribe-options.ts'
import { assertSubscriber, type Subscriber } from './core/subscriber.ts'
import { namingQueues } from './subscribe.ts'

/**
 * A handler apart from any outbox, for a module to export. What is wrong with it is said here, and not only when it is subscribed.
 *
 * @example
 * export const shipping = defineSubscriber(queues, 'orders', async ({ body }) => ship(body), { concurrency: 8 })
 * outbox.subscribe(shipping)
 */
// biome-ignore lint/complexity/useMaxParams: those of subscribe, after the map that types them
export function defineSubscriber<const M extends QueueMap, Q extends keyof M & string, Tx = unknown>(
  queues: M,
  names: Q | readonly Q[],
  handler: Handler<Q, BodiesOf<M>, Tx>,
  options?: SubscribeOptions,
): Subscriber<BodiesOf<M>, Tx> {
  const listed = assertSubscriber({ queues: names, handler }, queues)
  namingQueues(listed, () => resolveSubscribeOptions(options))
  const subscriber = { queues: listed, handler, options: options && Object.freeze({ ...options }) }
  return Object.freeze(subscriber) as unknown as Subscriber<BodiesOf<M>, Tx>
}
