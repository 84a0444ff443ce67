import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgres } from 'drizzle-orm/postgres-js'
import { Kysely, sql as kyselySql, PostgresDialect } from 'kysely'
import type pg from 'pg'
import { constant, createOutbox, type Outbox, OutboxError, typed } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
const queues = { orders: { body: typed<string>() }, emails: { body: typed<string>() } }
const options = { queues, schema: database.schema, logger: false } as const
const timed = (timeoutMs: number | undefined) => ({
  retry: constant({ delayMs: 3_600_000 }),
  ...(timeoutMs !== undefined && { timeoutMs }),
})

beforeAll(async () => {
  await createOutbox({ database: database.pool({ max: 1 }), schema: database.schema }).migrate()
  await database.query('create table effects (what text not null)')
})
beforeEach(() => database.query('delete from effects'))
beforeEach(() => database.query('delete from outbox'))

const effects = async (): Promise<readonly string[]> =>
  (await database.query<{ what: string }>('select what from effects order by what')).map(({ what }) => what)

function poolOf(): pg.Pool {
  const pool = database.pool({ max: 6 })
  onTestFinished(() => pool.end())
  return pool
}

type AnyOutbox = Outbox<{ orders: { in: string; out: string }; emails: { in: string; out: string } }>

/** An outbox whose handler writes its message's body and publishes it, by the transaction of a client, and fails where it is told to. */
interface Client {
  readonly name: string
  outbox(timeoutMs?: number): AnyOutbox
}

const clients: readonly Client[] = [
  {
    name: 'Drizzle on pg',
    outbox(timeoutMs) {
      const pool = poolOf()
      const outbox = createOutbox({ ...options, database: pool, orm: drizzle({ client: pool }) })
      outbox.subscribe(
        'orders',
        ({ body }, { transaction }) =>
          transaction(async (tx) => {
            await tx.execute(drizzleSql`insert into effects values (${body})`)
            await outbox.publish(tx, 'emails', body)
            if (body === 'fail') throw new Error('no')
          }),
        timed(timeoutMs),
      )
      return outbox
    },
  },
  {
    name: 'Drizzle on postgres.js',
    outbox(timeoutMs) {
      const [pool, client] = [poolOf(), database.postgresJs()]
      onTestFinished(() => client.end())
      const outbox = createOutbox({ ...options, database: pool, orm: drizzlePostgres({ client }) })
      outbox.subscribe(
        'orders',
        ({ body }, { transaction }) =>
          transaction(async (tx) => {
            await tx.execute(drizzleSql`insert into effects values (${body})`)
            await outbox.publish(tx, 'emails', body)
            if (body === 'fail') throw new Error('no')
          }),
        timed(timeoutMs),
      )
      return outbox
    },
  },
  {
    name: 'Kysely',
    outbox(timeoutMs) {
      const pool = poolOf()
      const orm = new Kysely<{ effects: { what: string } }>({ dialect: new PostgresDialect({ pool }) })
      const outbox = createOutbox({ ...options, database: pool, orm })
      outbox.subscribe(
        'orders',
        ({ body }, { transaction }) =>
          transaction(async (tx) => {
            await tx.insertInto('effects').values({ what: body }).execute()
            await kyselySql`select 1`.execute(tx)
            await outbox.publish(tx, 'emails', body)
            if (body === 'fail') throw new Error('no')
          }),
        timed(timeoutMs),
      )
      return outbox
    },
  },
  {
    name: 'postgres.js',
    outbox(timeoutMs) {
      const client = database.postgresJs()
      onTestFinished(() => client.end())
      const outbox = createOutbox({ ...options, database: client })
      outbox.subscribe(
        'orders',
        ({ body }, { transaction }) =>
          transaction(async (tx) => {
            await tx`insert into effects values (${body})`
            await outbox.publish(tx, 'emails', body)
            if (body === 'fail') throw new Error('no')
          }),
        timed(timeoutMs),
      )
      return outbox
    },
  },
]

describe.each(clients)('context.transaction with $name', ({ outbox: make }) => {
  test('commits what the application does in it, with the end of the message', async () => {
    const outbox = make()
    await outbox.publishNow('orders', 'shipped')
    const { acked } = await outbox.drain()

    expect(acked).toBe(1)
    expect(await effects()).toEqual(['shipped'])
    expect(await database.query('select queue from outbox')).toEqual([{ queue: 'emails' }])
  })

  test('leaves nothing of what failed', async () => {
    const outbox = make()
    await outbox.publishNow('orders', 'fail')
    const { retried } = await outbox.drain()

    expect(retried).toBe(1)
    expect(await effects()).toEqual([])
    expect(await database.query('select queue, last_error from outbox')).toEqual([
      { queue: 'orders', last_error: 'Error: no' },
    ])
  })

  test('is ended when its time is over, in the middle of a statement', async () => {
    const outbox = make(100)
    await outbox.publishNow('orders', 'shipped')
    const lock = await database.client()
    await lock.query('begin')
    await lock.query('lock table effects')
    const { retried } = await outbox.drain()
    await lock.query('rollback')
    await lock.end()

    expect(retried).toBe(1)
    expect(await effects()).toEqual([])
    expect(await database.query('select queue, attempts from outbox')).toEqual([
      { queue: 'orders', attempts: 1 },
    ])
  })
})

test('an `orm` that is none is told at the start', async () => {
  const outbox = createOutbox({ ...options, database: poolOf(), orm: { transaction: () => {} } as never })
  const refusal = await outbox.start().catch((error: unknown) => error)

  expect(OutboxError.is(refusal, 'OUTBOX_INVALID_OPTION')).toBe(true)
})
