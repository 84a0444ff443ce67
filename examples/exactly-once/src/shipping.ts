// A handler whose parcel, whose e-mail and whose acknowledgement are one commit.
import type { PGlite } from '@electric-sql/pglite'
import { createOutbox, type Outbox, typed } from 'postbox'

interface Order {
  readonly orderId: number
}

interface Email extends Order {
  readonly text: string
}

export function createShipping(db: PGlite): Outbox<{
  orders: { in: Order; out: Order }
  emails: { in: Email; out: Email }
}> {
  const outbox = createOutbox({
    database: db,
    queues: { orders: { body: typed<Order>() }, emails: { body: typed<Email>() } },
  })
  outbox.subscribe(
    'orders',
    async ({ body: { orderId } }, context) => {
      // Slow things, and calls of others, before it: a transaction holds a connection.
      await context.transaction(async (tx) => {
        await tx.query('insert into parcels (order_id) values ($1)', [orderId])
        await context.publish('emails', { orderId, text: 'On its way' })
      })
    },
    { timeoutMs: 10_000 },
  )
  return outbox
}
