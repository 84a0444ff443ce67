import type pg from 'pg'
import type { HandlerOf, SubscribeOptions } from 'postbox'
import { exponential, TerminalError } from 'postbox'
import { handOver, isKnown } from './carrier.ts'
import type { Shop } from './shop.ts'

/** After that many failed runs it is given up. */
export const mostAttempts = 3

/** Short waits, for a short demo: 100 to 200 ms after the first failure, twice that after the second. */
export const shipOptions: SubscribeOptions = {
  retry: exponential({ initialMs: 200, jitter: 'equal', maxAttempts: mostAttempts }),
}

/**
 * What it throws decides what becomes of the message. After most errors, such as that of a carrier that is down, it is
 * delivered again, when the retry policy says so; it goes to the dead letters when the policy allows no other run
 * (storm.ts). A TerminalError says that no retry will help: the message goes there at once, where it waits for somebody
 * to look at it (clerk.ts).
 */
export function shipper(shop: Shop): HandlerOf<Shop['outbox'], 'orders'> {
  return async function ship({ id, body, attempt }, context) {
    const { orderId, item } = body
    const { customer, address } = await findOrder(shop.pool, orderId)
    if (!isKnown(address)) throw new TerminalError(`no such address: ${address}`)
    await handOver(shop, { messageId: id, orderId, address, attempt })

    const insert = `
      insert into shipments (message_id, order_id, item, address, attempt)
      values ($1, $2, $3, $4, $5)
          on conflict (message_id) do nothing`
    await shop.pool.query(insert, [id, orderId, item, address, attempt])
    // A follow-on: written by the very statement that deletes this message, so that there is one e-mail for each
    // order shipped, however often this handler has to run.
    await context.publish('emails', { about: 'shipment', orderId, to: customer })
  }
}

async function findOrder(pool: pg.Pool, orderId: number): Promise<{ customer: string; address: string }> {
  const select = `
    select o.customer, coalesce(c.address, o.address) as address
      from orders o
      left join corrections c on c.order_id = o.id
     where o.id = $1`
  const { rows } = await pool.query<{ customer: string; address: string }>(select, [orderId])
  // Cannot happen: the order was committed with its message. SHOP_SABOTAGE=dual-write shows when it does.
  if (rows[0] === undefined) throw new Error(`there is no order ${orderId}`)
  return rows[0]
}
