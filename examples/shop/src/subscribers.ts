import { shipOptions, shipper } from './ship.ts'
import type { Shop } from './shop.ts'

/**
 * Delivery is at least once: a process that dies after its handler is done, but before the message is deleted, leaves
 * the message to be delivered again. So both handlers are idempotent: the message's id is the primary key of what they
 * write, and `on conflict do nothing` makes the second delivery of a message a delivery without effect.
 */
export function subscribe(shop: Shop): void {
  const { outbox, pool, tally } = shop
  outbox.subscribe('orders', shipper(shop), shipOptions)

  outbox.subscribe('emails', async function sendEmail({ id, body }) {
    const insert = `
      insert into emails_sent (message_id, order_id, recipient, about, coupon_code)
      values ($1, $2, $3, $4, $5)
          on conflict (message_id) do nothing`
    const values = [id, body.orderId, body.to, body.about, body.couponCode]
    const { rowCount } = await pool.query(insert, values)
    if (body.about === 'reminder' && rowCount === 1) tally.remindersSent += 1
  })
}
