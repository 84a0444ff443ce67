// A service behind a broker, with a database of its own: the same, for records that may come twice.
import type { PGlite } from '@electric-sql/pglite'
import { createOutbox } from 'postbox'

// No `database`: all that it needs is the caller's transaction.
const { inbox } = createOutbox()

export interface BrokerRecord {
  readonly topic: string
  readonly partition: number
  readonly offset: string
  readonly headers: Readonly<Record<string, string>>
  readonly value: { readonly orderId: number }
}

/** Whether the record is done with, and may be acknowledged to the broker. */
export async function consume(db: PGlite, record: BrokerRecord): Promise<boolean> {
  const { topic, partition, offset, headers, value } = record
  // What the publisher called it. Its place in the topic is another one when it is sent twice.
  const id = headers['id'] ?? `${topic}-${partition}@${offset}`
  const handled = await db.transaction((tx) =>
    inbox.once(tx, { consumer: 'shipping', id }, () =>
      tx.query('insert into parcels (order_id) values ($1)', [value.orderId]),
    ),
  )
  return handled.ran || handled.because === 'duplicate'
}
