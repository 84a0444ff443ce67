// defineSubscriber: a handler that a module exports, and the outboxes that it fits.
import type { Bodies, BodiesOf, Message, StandardSchema, Subscriber } from 'postbox'
import { createOutbox, defineSubscriber, typed } from 'postbox'
import { expectTypeOf } from 'vitest'
import type { Email } from './shop.ts'
import { outbox, queues } from './shop.ts'

type Order = { orderId: number }
type Shop = BodiesOf<typeof queues>

// Everything is inferred from the map.
const shipping = defineSubscriber(
  queues,
  'orders',
  async (message, context) => {
    expectTypeOf(message).toEqualTypeOf<Message<'orders', Order>>()
    await context.publish('emails', { to: 'ann@example.org', subject: 'Shipped' })
    // @ts-expect-error: the body of another queue
    await context.publish('emails', message.body)
    // @ts-expect-error: there is no such queue
    await context.publish('parcels', message.body)
  },
  { concurrency: 8 },
)
const auditing = defineSubscriber(queues, ['orders', 'emails'], (message) => {
  if (message.queue === 'orders') expectTypeOf(message.body).toEqualTypeOf<Order>()
  else expectTypeOf(message.body).toEqualTypeOf<Email>()
})
expectTypeOf(shipping).toEqualTypeOf<Subscriber<Shop>>()
expectTypeOf(shipping).toExtend<Subscriber<Shop>>()
// @ts-expect-error: there is no such queue
defineSubscriber(queues, 'ordesr', () => {})
// @ts-expect-error: there is no such queue in the list
defineSubscriber(queues, ['orders', 'emials'], () => {})
// @ts-expect-error: a misspelt option
defineSubscriber(queues, 'orders', () => {}, { concurency: 8 })
// @ts-expect-error: the handler is missing
defineSubscriber(queues, 'orders')
// @ts-expect-error: a handler of other bodies
defineSubscriber(queues, 'orders', (message: Message<'orders', Email>) => message.id)
// @ts-expect-error: read-only
shipping.options = { concurrency: 1 }

// One, or a list of them, of different maps.
outbox.subscribe(shipping)
outbox.subscribe([shipping, auditing])
const parcels = defineSubscriber({ parcels: {} }, 'parcels', () => {})
const larger = createOutbox({ queues: { ...queues, parcels: {} } })
larger.subscribe([shipping, parcels])
// @ts-expect-error: it has its handler
outbox.subscribe(shipping, () => {})
// @ts-expect-error: this outbox has no queue `parcels`
outbox.subscribe(parcels)
// @ts-expect-error: this outbox has no queue `parcels`
outbox.subscribe([shipping, parcels])
// @ts-expect-error: its follow-ons may go to `emails`, which this outbox has not
createOutbox({ queues: { orders: queues.orders } }).subscribe(shipping)
// @ts-expect-error: nothing is known of these bodies
createOutbox().subscribe(shipping)

// Bodies must fit: what the outbox gives to the handler, and what it takes from it.
declare const order: StandardSchema<Order, Order>
declare const takesMore: StandardSchema<{ orderId: number | string }, Order>
declare const takesLess: StandardSchema<{ orderId: 1 }, Order>
declare const givesMore: StandardSchema<Order, { orderId: number | string }>
declare const givesLess: StandardSchema<Order, { orderId: 1 }>
const ship = defineSubscriber({ orders: { body: order } }, 'orders', () => {})
createOutbox({ queues: { orders: { body: takesMore } } }).subscribe(ship)
createOutbox({ queues: { orders: { body: givesLess } } }).subscribe(ship)
// @ts-expect-error: the outbox refuses what the handler may publish
createOutbox({ queues: { orders: { body: takesLess } } }).subscribe(ship)
// @ts-expect-error: the handler gets what it does not know
createOutbox({ queues: { orders: { body: givesMore } } }).subscribe(ship)
// @ts-expect-error: other bodies
createOutbox({ queues: { orders: { body: typed<Email>() } } }).subscribe(ship)
expectTypeOf<Subscriber>().toEqualTypeOf<Subscriber<Bodies>>()
