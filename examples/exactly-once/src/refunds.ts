// The same by an ORM: `orm` opens the transactions, and `tx` is its own.
import type { PGlite } from '@electric-sql/pglite'
import { integer, pgTable } from 'drizzle-orm/pg-core'
import { drizzle } from 'drizzle-orm/pglite'
import { createOutbox, type Outbox, typed } from 'postbox'

interface Order {
  readonly orderId: number
}

const refunds = pgTable('refunds', { orderId: integer('order_id').notNull() })

export function createRefunds(db: PGlite): Outbox<{ refunds: { in: Order; out: Order } }> {
  const outbox = createOutbox({
    database: db,
    orm: drizzle({ client: db }),
    queues: { refunds: { body: typed<Order>() } },
  })
  outbox.subscribe('refunds', async ({ id, body: { orderId } }, context) => {
    await context.transaction(async (tx) => {
      if (orderId < 0) return context.reject('there is no such order') // rolls back, and stands
      // One message that is *published* twice is two messages: only the inbox knows that they mean the same.
      const handled = await outbox.inbox.once(tx, { consumer: 'refunds', id }, () =>
        tx.insert(refunds).values({ orderId }),
      )
      if (!handled.ran && handled.because === 'busy') context.snooze(1_000)
    })
  })
  return outbox
}
