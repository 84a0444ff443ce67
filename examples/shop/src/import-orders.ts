import { goodAddress } from './addresses.ts'
import type { Shop } from './shop.ts'
import { inTransaction } from './transaction.ts'

const ordersInImport = 500
const customer = 'wholesale@example.com'
const item = 'crate of teapots'

/** Many orders in one transaction, and their messages in one statement per queue. */
export async function importOrders({ pool, outbox, tally }: Shop): Promise<void> {
  await inTransaction(pool, async (client) => {
    const insert = `
      insert into orders (customer, item, address)
      select $1, $2, $3 from generate_series(1, $4)
      returning id`
    const values = [customer, item, goodAddress, ordersInImport]
    const { rows } = await client.query<{ id: number }>(insert, values)
    const orderIds = rows.map(({ id }) => id)
    await outbox.publishMany(
      client,
      'orders',
      orderIds.map((orderId) => ({ orderId, item })),
    )
    await outbox.publishMany(
      client,
      'emails',
      orderIds.map((orderId) => ({ about: 'order' as const, orderId, to: customer })),
    )
  })
  tally.ordersPlaced += ordersInImport
}
