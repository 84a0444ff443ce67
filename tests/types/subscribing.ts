// Subscribing: a handler's message and context are inferred, and cannot be changed.
import type { PoolClient } from 'pg'
import type { BodiesOf, Context, HandlerOf, Headers, Message, MessageOf, Outbox, QueueOf } from 'postbox'
import { expectTypeOf } from 'vitest'
import type { Email } from './shop.ts'
import { outbox, poolClient, type queues } from './shop.ts'

interface Shipment {
  trackingId: string
}
declare function ship(order: { orderId: number }): Promise<Shipment>
declare function print(order: { orderId: number }): number

// Everything is inferred from the queue.
outbox.subscribe('orders', (message, context) => {
  expectTypeOf(message).toEqualTypeOf<Message<'orders', { orderId: number }>>()
  expectTypeOf(message.body).toEqualTypeOf<{ orderId: number }>()
  expectTypeOf(message.queue).toEqualTypeOf<'orders'>()
  expectTypeOf(message.key).toEqualTypeOf<string | null>()
  expectTypeOf(message.headers).toEqualTypeOf<Headers>()
  expectTypeOf(message.createdAt).toEqualTypeOf<Date>()
  expectTypeOf(message.raw).toEqualTypeOf<Uint8Array>()
  expectTypeOf(context).toEqualTypeOf<Context<BodiesOf<typeof queues>, PoolClient>>()
  expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>()
})
outbox.subscribe('emails', ({ body }) => expectTypeOf(body).toEqualTypeOf<Email>())

// A handler may return anything: its value is ignored.
outbox.subscribe('orders', (message) => ship(message.body))
outbox.subscribe('orders', ({ body }) => print(body))
outbox.subscribe('orders', async () => {})
outbox.subscribe('orders', () => undefined)

// Options: all of them, beside an inferred handler, and no others.
outbox.subscribe('orders', (message) => ship(message.body), {
  name: 'shipping',
  concurrency: 8,
  leaseMs: 60_000,
  timeoutMs: 30_000,
  prefetch: 100,
  flush: 'each',
  maxBatch: 500,
  pollMs: { min: 20, max: 1_000 },
})
// @ts-expect-error: no such way to flush
outbox.subscribe('orders', () => {}, { flush: 'never' })
// @ts-expect-error: a misspelt option
outbox.subscribe('orders', () => {}, { concurency: 3 })
// @ts-expect-error: a misspelt option beside a right one
outbox.subscribe('orders', () => {}, { concurrency: 3, leasMs: 1_000 })
// @ts-expect-error: an option of the wrong type
outbox.subscribe('orders', () => {}, { concurrency: '3' })
// @ts-expect-error: half of an option
outbox.subscribe('orders', () => {}, { pollMs: { min: 20 } })
// @ts-expect-error: there is no such queue
outbox.subscribe('ordesr', () => {})
// @ts-expect-error: the handler is missing
outbox.subscribe('orders')
// @ts-expect-error: no handler
outbox.subscribe('orders', { concurrency: 3 })
// @ts-expect-error: a misspelt property of the body
outbox.subscribe('orders', ({ body }) => body.orderID)
// @ts-expect-error: a handler of other bodies
outbox.subscribe('orders', (message: Message<'orders', Email>) => message.body.to)
// @ts-expect-error: a handler of another queue
outbox.subscribe('orders', (message: Message<'emails', { orderId: number }>) => message.id)

// Named handlers.
expectTypeOf<MessageOf<typeof outbox, 'orders'>>().toEqualTypeOf<Message<'orders', { orderId: number }>>()
expectTypeOf<MessageOf<typeof outbox, 'emails'>['body']>().toEqualTypeOf<Email>()
// One handler of several queues: a union, told apart by `queue`.
type Either = MessageOf<typeof outbox, 'orders' | 'emails'>
expectTypeOf<Either>().toEqualTypeOf<Message<'orders', { orderId: number }> | Message<'emails', Email>>()
expectTypeOf<MessageOf<typeof outbox, QueueOf<typeof outbox>>>().toEqualTypeOf<Either>()
const handleEither: HandlerOf<typeof outbox, 'orders' | 'emails'> = (message) => {
  // @ts-expect-error: it may be an email
  message.body.orderId
  if (message.queue === 'orders') expectTypeOf(message.body).toEqualTypeOf<{ orderId: number }>()
  else expectTypeOf(message.body).toEqualTypeOf<Email>()
}
outbox.subscribe('orders', handleEither)
outbox.subscribe('emails', handleEither)
expectTypeOf<MessageOf<Outbox, 'any'>>().toEqualTypeOf<Message<'any', unknown>>()
// @ts-expect-error: there is no such queue
declare const misspelt: HandlerOf<typeof outbox, 'ordesr'>
misspelt
expectTypeOf<QueueOf<typeof outbox>>().toEqualTypeOf<'emails' | 'orders'>()
const shipOrder: HandlerOf<typeof outbox, 'orders'> = async (message, { signal }) => {
  expectTypeOf(message.body).toEqualTypeOf<{ orderId: number }>()
  expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
  return ship(message.body)
}
outbox.subscribe('orders', shipOrder)
// @ts-expect-error: the handler of another queue
outbox.subscribe('emails', shipOrder)

// A handler cannot change what others see.
outbox.subscribe('orders', (message, context) => {
  // @ts-expect-error: read-only
  message.body = { orderId: 2 }
  // @ts-expect-error: read-only
  message.attempt = 0
  // @ts-expect-error: read-only
  message.headers['origin'] = 'shop'
  // @ts-expect-error: read-only
  context.signal = AbortSignal.timeout(1)
})
// @ts-expect-error: read-only
outbox.current = outbox.in(poolClient)
