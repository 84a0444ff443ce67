import type pg from 'pg'
import { createOutbox, type Outbox } from 'postbox'
import { beforeAll, beforeEach, onTestFinished } from 'vitest'
import type { TestDatabase } from './database.ts'

/** An outbox on a pool, and a table for the effects of handling a message. */
export interface InboxBench {
  readonly pool: pg.Pool
  readonly outbox: Outbox
  /** Somebody's open transaction; rolled back when the test ends, if it is still open then. */
  begin(isolation?: string): Promise<pg.PoolClient>
  /** The effect. */
  bill(client: pg.ClientBase, id: string): Promise<unknown>
  /** The ids that were billed, in order. */
  billed(): Promise<readonly string[]>
}

export function useInbox(database: TestDatabase): InboxBench {
  let pool: pg.Pool
  let outbox: Outbox
  beforeAll(async () => {
    pool = database.pool({ max: 12 })
    outbox = createOutbox({ database: pool, schema: database.schema, logger: false })
    await outbox.migrate()
    await database.query('create table invoices (message_id text not null)')
  })
  beforeEach(async () => {
    await database.query('truncate outbox, outbox_dead, outbox_handled, invoices')
  })
  return {
    get pool() {
      return pool
    },
    get outbox() {
      return outbox
    },
    async begin(isolation = 'read committed') {
      const client = await pool.connect()
      onTestFinished(() =>
        client.query('rollback').then(
          () => client.release(),
          () => client.release(true),
        ),
      )
      await client.query(`begin isolation level ${isolation}`)
      return client
    },
    bill: (client, id) => client.query('insert into invoices values ($1)', [id]),
    async billed() {
      const rows = await database.query<{ message_id: string }>('select message_id from invoices')
      return rows.map(({ message_id }) => message_id).sort()
    },
  }
}
