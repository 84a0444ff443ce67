import type pg from 'pg'
import type { BodiesOf, Logger, Outbox } from 'postbox'
import { createOutbox } from 'postbox'
import type { ShopDatabase } from './database.ts'
import { queues } from './queues.ts'
import { createTables } from './tables.ts'

export interface Shop {
  readonly pool: pg.Pool
  readonly outbox: Outbox<BodiesOf<typeof queues>>
  readonly tally: Tally
}

/** What this process did, for the screen. The verdict does not believe it: it counts rows. */
export interface Tally {
  ordersPlaced: number
  ordersDeclined: number
  couponsKept: number
  couponsWithdrawn: number
  published: number
  delivered: number
}

export async function createShop({ pool, schema }: ShopDatabase, logger: Logger): Promise<Shop> {
  // The outbox uses the shop's own pool and lives in the shop's own database: that is the whole trick. There is no
  // broker to reach, and the transaction that writes an order can write its messages too.
  const outbox = createOutbox({ database: pool, schema, queues, logger })
  await outbox.migrate()
  await pool.query(createTables)
  return { pool, outbox, tally: emptyTally() }
}

function emptyTally(): Tally {
  return {
    ordersPlaced: 0,
    ordersDeclined: 0,
    couponsKept: 0,
    couponsWithdrawn: 0,
    published: 0,
    delivered: 0,
  }
}
