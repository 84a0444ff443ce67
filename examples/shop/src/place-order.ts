import type pg from 'pg'
import { sendInvoice } from './invoices.ts'
import type { Shop } from './shop.ts'
import { inTransaction } from './transaction.ts'

export type Fate =
  | 'paid'
  | 'declined'
  | 'coupon kept'
  | 'coupon withdrawn'
  | 'invoice paid'
  | 'invoice unpaid'
  | 'wrong address'
  | 'island'

export interface Visit {
  readonly customer: string
  readonly item: string
  readonly address: string
  readonly fate: Fate
}

/** Thrown inside the transaction, like any other error that makes one roll back. */
class PaymentDeclined extends Error {}

/**
 * One order, one transaction. The order and the messages about it are written together, so they are committed together
 * or not at all: wherever this process dies, there is never an order without its messages or a message without its order.
 *
 * Resolves with the order's id; null: there is no order.
 */
export async function placeOrder(shop: Shop, visit: Visit): Promise<number | null> {
  const { pool, outbox } = shop
  const { customer, item, fate } = visit
  try {
    const placed = await inTransaction(pool, async (client) => {
      const orderId = await insertOrder(client, visit)
      // On `client`, the connection of this transaction. A message published elsewhere would survive the rollback.
      await outbox.publish(client, 'orders', { orderId, item })
      await outbox.publish(client, 'emails', { about: 'order', orderId, to: customer })
      if (fate === 'coupon kept' || fate === 'coupon withdrawn')
        await addCoupon(shop, client, { ...visit, orderId })
      if (fate === 'invoice paid' || fate === 'invoice unpaid')
        await sendInvoice(shop, client, { orderId, customer })
      if (fate === 'declined') await decline(pool, orderId)
      return orderId
    })
    count(shop, fate)
    return placed
  } catch (error) {
    if (!(error instanceof PaymentDeclined)) throw error
    shop.tally.ordersDeclined += 1
    return null
  }
}

async function insertOrder(client: pg.PoolClient, { customer, item, address }: Visit): Promise<number> {
  const insert = 'insert into orders (customer, item, address) values ($1, $2, $3) returning id'
  const { rows } = await client.query<{ id: number }>(insert, [customer, item, address])
  return rows[0]!.id
}

/** A savepoint is a transaction within the transaction: rolling back to it takes back its messages, and only those. */
async function addCoupon(
  shop: Shop,
  client: pg.PoolClient,
  order: Visit & { orderId: number },
): Promise<void> {
  const { orderId, customer, fate } = order
  const couponCode = `THANKS-${orderId}`
  await client.query('savepoint coupon')
  await client.query('insert into coupons (code, order_id) values ($1, $2)', [couponCode, orderId])
  await shop.outbox.publish(client, 'emails', { about: 'coupon', orderId, to: customer, couponCode })
  if (fate === 'coupon kept') {
    await client.query('release savepoint coupon')
    return
  }
  await shop.pool.query('insert into withdrawn_coupons (code) values ($1)', [couponCode])
  await client.query('rollback to savepoint coupon')
}

/** The messages are published already. The rollback that follows takes them back, with the order. */
async function decline(pool: pg.Pool, orderId: number): Promise<never> {
  // On another connection, so that the note stays and the verdict knows which order must not have been delivered.
  // Sequences do not roll back: no later order gets this id.
  await pool.query('insert into declined (order_id) values ($1)', [orderId])
  throw new PaymentDeclined()
}

function count({ tally }: Shop, fate: Fate): void {
  tally.ordersPlaced += 1
  if (fate === 'coupon kept') tally.couponsKept += 1
  if (fate === 'coupon withdrawn') tally.couponsWithdrawn += 1
  if (fate === 'invoice paid' || fate === 'invoice unpaid') tally.timersArmed += 1
}
