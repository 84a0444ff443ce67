// The application: it knows nothing of tests.
import type pg from 'pg'
import { constant, createOutbox, TerminalError, typed } from 'postbox'

export interface Order {
  readonly orderId: number
  readonly item: string
}

export const outbox = createOutbox({
  // database: pool — not needed to publish, nor by any test on these pages
  queues: {
    orders: { body: typed<Order>() },
    emails: { body: typed<{ readonly orderId: number; readonly text: string }>() },
  },
})

export async function placeOrder(tx: pg.ClientBase, order: Order): Promise<void> {
  await tx.query('insert into orders (id, item) values ($1, $2)', [order.orderId, order.item])
  await outbox.publish(tx, 'orders', order)
  await outbox.publish(
    tx,
    'emails',
    { orderId: order.orderId, text: 'How was it?' },
    { delayMs: 7 * 24 * 3_600_000 },
  )
}

export interface Warehouse {
  ship(order: Order): Promise<void>
}

/** Subscribes what handles orders, to whichever warehouse there is. */
export function handleOrders(warehouse: Warehouse): void {
  outbox.subscribe(
    'orders',
    async ({ body }, context) => {
      if (body.item === 'ivory') throw new TerminalError('we do not sell that')
      await warehouse.ship(body)
      await context.publish('emails', { orderId: body.orderId, text: 'On its way' })
    },
    { retry: constant({ delayMs: 60_000, maxAttempts: 3 }) },
  )
}
