// biome-ignore-all lint/suspicious/noExplicitAny: these are the mistakes of those who do not compile
import type pg from 'pg'
import { createOutbox, type Outbox, OutboxError, typed } from 'postbox'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { useDatabase } from '../support/database.ts'
import { messageMistakes } from './message-mistakes.ts'
import { mistakes as nameMistakes } from './mistakes.ts'

const mistakes = { ...nameMistakes, ...messageMistakes }

const database = useDatabase()

describe.each(Object.entries(mistakes))('refusals: %s', (_group, table) => {
  let pool: pg.Pool
  let client: pg.Client
  let outbox: Outbox<any>
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)

  beforeAll(async () => {
    pool = database.pool()
    client = await database.client()
    outbox = createOutbox({
      database: pool,
      schema: database.schema,
      maxBodyBytes: 1_024,
      logger: false,
      queues: {
        orders: { body: typed<unknown>() },
        emails: {},
        checked: { body: z.object({ orderId: z.number() }) },
        dated: { body: z.object({ at: z.date() }) },
        broken: {
          body: z.custom(() => {
            throw new Error('schema is broken')
          }),
        },
        encoded: { codec: { contentType: 'x/number', encode: onlyNumbers, decode: () => 1 } },
      },
    })
    await outbox.migrate()
    outbox.subscribe('emails', () => {})
    process.on('unhandledRejection', note)
  })

  beforeEach(async () => {
    await client.query('begin')
    await client.query('create temporary table mine (id int) on commit drop')
  })

  afterEach(async () => {
    await client.query('rollback')
  })

  afterAll(() => {
    process.removeListener('unhandledRejection', note)
  })

  test.each(table)('%s', async (...[, code, shows, make]) => {
    const error = await attempt(() => make({ outbox, tx: client, schema: database.schema }))

    expect(error).toMatchObject({
      code,
      message: expect.stringContaining(shows),
      hint: expect.stringMatching(/\S/),
    })
    expect(OutboxError.is(error, code as never)).toBe(true)
    // The caller's transaction is still usable, what it did before is still there, and no row was written.
    await client.query('insert into mine values (1)')
    const { rows } = await client.query(
      `select (select count(*) from mine)::int as mine, count(*)::int as messages from ${database.schema}.outbox`,
    )
    expect(rows).toEqual([{ mine: 1, messages: 0 }])
    await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).toEqual([])
  })
})

function onlyNumbers(): Uint8Array {
  throw new Error('only numbers')
}

async function attempt(make: () => unknown): Promise<unknown> {
  try {
    await make()
    return null
  } catch (error) {
    return error
  }
}

test.each<[string, (outbox: Outbox, pool: any) => Promise<unknown>]>([
  ['publish', (outbox, pool) => outbox.publish(pool, 'orders', 1)],
  ['cancelTimer', (outbox, pool) => outbox.cancelTimer(pool, 'orders', 't')],
  ['pending', (outbox, pool) => outbox.pending(pool)],
])('%s on a pool is refused with a hint that is true of it', async (_title, make) => {
  const pool = database.pool()
  const outbox = createOutbox({ schema: database.schema })

  await expect(make(outbox, pool)).rejects.toMatchObject({
    code: 'OUTBOX_NOT_IN_TRANSACTION',
    hint: expect.stringMatching(/^Begin a transaction .* Only publishNow does without one\.$/),
  })
  await pool.end()
})

test('all problems of the options are told at once', () => {
  const creating = (): unknown =>
    createOutbox({ quees: {}, wake: 'no', maxBodyBytes: 0, defaults: { leaseMs: 1 } } as never)

  expect(creating).toThrow(/quees.*wake.*maxBodyBytes.*leaseMs/)
})

test('the groups are as large as promised', () => {
  const least = { names: 10, options: 15, bodies: 10, headers: 5, middleware: 5, dates: 5, handles: 10 }

  for (const [name, count] of Object.entries(least))
    expect(mistakes[name]?.length).toBeGreaterThanOrEqual(count)
})
