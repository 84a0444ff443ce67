import type { Shop } from './shop.ts'
import { inTransaction } from './transaction.ts'

const ordersInImport = 500
const customer = 'wholesale@example.com'
const item = 'crate of teapots'

/** Many orders in one transaction, and their messages in one statement per queue. */
export async function importOrders({ pool, outbox, tally }: Shop): Promise<void> {
  await inTransaction(pool, async (client) => {
    const insert =
      'insert into orders (customer, item) select $1, $2 from generate_series(1, $3) returning id'
    const { rows } = await client.query<{ id: number }>(insert, [customer, item, ordersInImport])
    const orderIds = rows.map(({ id }) => id)
    await outbox.publishMany(
      client,
      'orders',
      orderIds.map((orderId) => ({ orderId, item })),
    )
    await outbox.publishMany(
      client,
      'emails',
      orderIds.map((orderId) => ({ orderId, to: customer, couponCode: null })),
    )
  })
  tally.ordersPlaced += ordersInImport
  tally.published += 2 * ordersInImport
}
