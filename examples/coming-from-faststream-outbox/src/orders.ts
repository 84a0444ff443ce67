import type pg from 'pg'
import { createOutbox, exponential, TerminalError, typed } from 'postbox'

export const outbox = createOutbox({
  // database: pool — what publishes, and what is tested here, needs none
  source: 'shop',
  generation: 1,
  queues: {
    orders: { body: typed<{ readonly orderId: number; readonly item: string }>() },
    reminders: { body: typed<{ readonly orderId: number }>() },
  },
})

/** In the caller's transaction: nothing is begun, flushed or committed. */
export async function placeOrder(tx: pg.ClientBase, orderId: number, item: string): Promise<void> {
  await tx.query('insert into orders (id, item) values ($1, $2)', [orderId, item])
  await outbox.publish(tx, 'orders', { orderId, item }, { headers: { type: 'order.placed' } })
  await outbox.publish(tx, 'reminders', { orderId }, { delayMs: 3_600_000, timerId: `order ${orderId}` })
}

/** Only while nobody runs it; final when the transaction commits. */
export function payOrder(tx: pg.ClientBase, orderId: number): Promise<boolean> {
  return outbox.cancelTimer(tx, 'reminders', `order ${orderId}`)
}

/** The schedule that faststream-outbox has when none is given. */
const asBefore = exponential({ initialMs: 1_000, factor: 2, maxMs: 300_000, maxAttempts: 10, jitter: 0.2 })

export interface Warehouse {
  ship(orderId: number): Promise<void>
}

export function handleOrders(warehouse: Warehouse): void {
  outbox.subscribe(
    'orders',
    async function shipOrder({ body }, context) {
      if (body.item === 'ivory') throw new TerminalError('we do not sell that')
      await warehouse.ship(body.orderId)
      // What a handler returned as an OutboxResponse: written with the delete of its message, or not at all.
      await context.publish('reminders', { orderId: body.orderId })
    },
    { retry: asBefore, concurrency: 1, maxDeliveries: null },
  )
}
