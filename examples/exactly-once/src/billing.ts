// A handler of an outbox: its message may come twice, its invoice is written once.
import type { PGlite } from '@electric-sql/pglite'
import { createOutbox, type Outbox, typed } from 'postbox'

interface Order {
  readonly orderId: number
}

export function createBilling(db: PGlite): Outbox<{ orders: { in: Order; out: Order } }> {
  const outbox = createOutbox({ database: db, queues: { orders: { body: typed<Order>() } } })
  outbox.subscribe('orders', async ({ id, body }, context) => {
    const handled = await db.transaction((tx) =>
      outbox.inbox.once(tx, { consumer: 'billing', id }, () =>
        tx.query('insert into invoices (order_id) values ($1)', [body.orderId]),
      ),
    )
    // Not a duplicate: whoever has it may yet fail. Let it come again.
    if (!handled.ran && handled.because === 'busy') context.snooze(1_000)
  })
  return outbox
}
