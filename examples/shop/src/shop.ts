import type pg from 'pg'
import type { BodiesOf, LogEntry, Outbox } from 'postbox'
import { createOutbox } from 'postbox'
import type { ShopDatabase } from './database.ts'
import { countEvents, isNews } from './events.ts'
import { queues } from './queues.ts'
import { createTables } from './tables.ts'

export interface Shop {
  readonly pool: pg.Pool
  readonly outbox: Outbox<BodiesOf<typeof queues>>
  readonly tally: Tally
  /** A fault of somebody else's: it lasts until the shop closes. */
  readonly weather: Weather
}

export interface Weather {
  isStormy: boolean
}

/** What this process did, for the screen. The verdict does not believe it: it counts rows. */
export interface Tally {
  ordersPlaced: number
  ordersDeclined: number
  couponsKept: number
  couponsWithdrawn: number
  timersArmed: number
  timersCancelled: number
  remindersSent: number
  delivered: number
  retried: number
  /** Why the last message was retried. */
  lastFailure: string
  died: number
  deadReplayed: number
  /** Why the last message died. */
  lastDeath: string
}

export async function createShop({ pool, schema }: ShopDatabase, say: (line: string) => void): Promise<Shop> {
  const tally = emptyTally()
  const logger = (entry: LogEntry): void => {
    if (isNews(entry)) say(`[postbox] ${entry.message} ${entry.error ?? ''}`)
  }
  // The outbox uses the shop's own pool and lives in the shop's own database: that is the whole trick. There is no
  // broker to reach, and the transaction that writes an order can write its messages too.
  const outbox = createOutbox({ database: pool, schema, queues, logger, onEvent: countEvents(tally) })
  await outbox.migrate()
  await pool.query(createTables)
  return { pool, outbox, tally, weather: { isStormy: true } }
}

function emptyTally(): Tally {
  return {
    ordersPlaced: 0,
    ordersDeclined: 0,
    couponsKept: 0,
    couponsWithdrawn: 0,
    timersArmed: 0,
    timersCancelled: 0,
    remindersSent: 0,
    delivered: 0,
    retried: 0,
    lastFailure: '',
    died: 0,
    deadReplayed: 0,
    lastDeath: '',
  }
}
