import type pg from 'pg'
import type { Shop } from './shop.ts'
import { inTransaction } from './transaction.ts'

// Short, for a short demo, though not too short for a slow machine to pay in time. When the shop closes it waits for the last reminder.
const reminderAfterMs = 3_000

/**
 * A timer is a message that is due later and has a name. It is armed in the transaction of the order: an order that is
 * rolled back reminds nobody.
 */
export async function sendInvoice(
  { outbox }: Shop,
  client: pg.PoolClient,
  order: { readonly orderId: number; readonly customer: string },
): Promise<void> {
  const { orderId, customer } = order
  await client.query('insert into invoices (order_id) values ($1)', [orderId])
  const reminder = { about: 'reminder', orderId, to: customer } as const
  await outbox.publish(client, 'emails', reminder, {
    timerId: timerOf(orderId),
    delayMs: reminderAfterMs,
  })
}

/** Cancels the timer in the transaction of the payment: the customer has paid and is not reminded, or neither. */
export async function payInvoice({ pool, outbox, tally }: Shop, orderId: number): Promise<void> {
  const isInTime = await inTransaction(pool, async (client) => {
    // False when the timer has gone off: the reminder is sent, or being sent this moment.
    const isCancelled = await outbox.cancelTimer(client, 'emails', timerOf(orderId))
    await client.query('update invoices set paid_in_time = $2 where order_id = $1', [orderId, isCancelled])
    return isCancelled
  })
  if (isInTime) tally.timersCancelled += 1
}

function timerOf(orderId: number): string {
  return `reminder-${orderId}`
}
