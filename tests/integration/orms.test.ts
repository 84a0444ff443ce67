import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable } from 'drizzle-orm/pg-core'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { createOutbox } from 'postbox'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'

// What the suite for all clients does not ask: the transactions of ORMs with the application's own queries beside a publish.
const database = useDatabase()
let pool: pg.Pool
const stock = pgTable('stock', { left: integer('left').notNull() })
interface Shop {
  stock: { left: number }
}

beforeAll(async () => {
  pool = new pg.Pool({ connectionString: database.url, max: 2, idleTimeoutMillis: 0 })
  await pool.query('create table stock ("left" integer not null check ("left" >= 0))')
  await createOutbox({ database: pool, schema: database.schema }).migrate()
})

beforeEach(async () => {
  await pool.query('truncate stock, outbox')
})

afterAll(() => pool.end())

const outbox = () => createOutbox({ schema: database.schema, logger: false })
const stored = async (): Promise<unknown> =>
  (
    await pool.query(`select (select array_agg("left") from stock) as "left",
      (select array_agg(convert_from(body, 'UTF8') order by seq) from outbox) as bodies`)
  ).rows[0]

test('Drizzle: a row of a typed table and its message are committed together, and rolled back by tx.rollback', async () => {
  const db = drizzle(pool, { schema: { stock } })

  await db.transaction(async (tx) => {
    await tx.insert(stock).values({ left: 1 })
    await outbox().publish(tx, 'orders', 'kept')
  })
  const rolledBack = db.transaction(async (tx) => {
    await tx.insert(stock).values({ left: 2 })
    await outbox().publish(tx, 'orders', 'gone')
    tx.rollback()
  })

  await expect(rolledBack).rejects.toThrow('Rollback')
  expect(await stored()).toEqual({ left: [1], bodies: ['kept'] })
})

test('Drizzle: a transaction that has failed is refused before anything is sent', async () => {
  const db = drizzle(pool)

  const work = db.transaction(async (tx) => {
    await expect(tx.insert(stock).values({ left: -1 })).rejects.toThrow()
    // The client knows of it one answer later.
    await expect(tx.execute('select 1')).rejects.toThrow()
    await outbox().publish(tx, 'orders', 1)
  })

  await expect(work).rejects.toMatchObject({
    code: 'OUTBOX_NOT_IN_TRANSACTION',
    message: expect.stringContaining('the Drizzle handle'),
  })
  expect(await stored()).toEqual({ left: null, bodies: null })
})

const kysely = (): Kysely<Shop> => new Kysely<Shop>({ dialect: new PostgresDialect({ pool }) })

test('Kysely: a savepoint of a controlled transaction takes its message back', async () => {
  const tx = await kysely().startTransaction().execute()
  await tx.insertInto('stock').values({ left: 1 }).execute()
  const inner = await tx.savepoint('here').execute()
  await outbox().publish(inner, 'orders', 'gone')
  const after = await inner.rollbackToSavepoint('here').execute()
  await outbox().publish(after, 'orders', 'kept')
  await after.commit().execute()

  expect(await stored()).toEqual({ left: [1], bodies: ['kept'] })
})

test('Kysely: with another schema for its own queries, it publishes where the outbox is', async () => {
  await kysely()
    .transaction()
    .execute((tx) => outbox().publish(tx.withSchema('elsewhere'), 'orders', 1))

  expect(await stored()).toEqual({ left: null, bodies: ['1'] })
})

test('Kysely: a transaction that was kept beyond its end publishes nothing', async () => {
  const kept = await kysely()
    .transaction()
    .execute(async (tx) => tx)

  await expect(outbox().publish(kept, 'orders', 1)).rejects.toThrow('already committed')
  expect(await stored()).toEqual({ left: null, bodies: null })
})
