import type pg from 'pg'
import { createOutbox, typed } from 'postbox'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let client: pg.Client
let sent: string[]

const queues = {
  orders: { body: typed<{ orderId: number }>() },
  moved: { body: z.object({ at: z.coerce.date(), amount: z.string().transform(Number) }) },
}

beforeAll(async () => {
  await createOutbox({ database: database.pool(), schema: database.schema, queues }).migrate()
  client = await database.client()
  const query = client.query.bind(client) as (...args: unknown[]) => unknown
  client.query = ((...args: unknown[]) => {
    sent.push(String(args[0]))
    return query(...args)
  }) as never
})

beforeEach(async () => {
  sent = []
  await database.query('delete from outbox')
})

/** The statements sent between begin and commit. */
async function statementsOf(work: () => Promise<unknown>): Promise<readonly string[]> {
  await client.query('begin')
  sent = []
  await work()
  const between = [...sent]
  await client.query('commit')
  return between
}

test('publishMany of 10,000 bodies is exactly one statement, in the order of the bodies', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })
  const bodies = Array.from({ length: 10_000 }, (_, orderId) => ({ orderId }))
  let receipts: readonly { seq: string }[] = []

  const statements = await statementsOf(async () => {
    receipts = await outbox.publishMany(client, 'orders', bodies)
  })

  expect(statements).toHaveLength(1)
  expect(receipts).toHaveLength(10_000)
  const inOrder = await database.query(
    `select count(*)::int as messages,
            bool_and((convert_from(body, 'utf8')::jsonb ->> 'orderId')::int = place) as ordered
       from (select body, row_number() over (order by seq) - 1 as place from outbox) as m`,
  )
  expect(inOrder).toEqual([{ messages: 10_000, ordered: true }])
})

test('publish neither begins nor commits nor prepares: the one statement is an unnamed insert', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })

  const statements = await statementsOf(() => outbox.publish(client, 'orders', { orderId: 1 }))

  expect(statements).toHaveLength(1)
  expect(statements[0]).toMatch(/^\s*insert into .*\nvalues \(/)
  expect(await client.query('select count(*)::int as named from pg_prepared_statements')).toMatchObject({
    rows: [{ named: 0 }],
  })
})

test('a plain publish needs no speculative insertion: only a timer has a conflict clause', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })

  const statements = await statementsOf(async () => {
    await outbox.publish(client, 'orders', { orderId: 1 })
    await outbox.publish(client, 'orders', { orderId: 1 }, { timerId: 't' })
  })

  expect(statements.map((text) => text.includes('on conflict'))).toEqual([false, true])
})

test('the schema’s input is stored, so that its output can be made again at delivery', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })

  await statementsOf(() => outbox.publish(client, 'moved', { at: '2030-01-02T03:04:05Z', amount: '12.5' }))

  const [row] = await database.query<{ body: Buffer }>('select body from outbox')
  expect(JSON.parse(row?.body.toString() ?? '')).toEqual({ at: '2030-01-02T03:04:05Z', amount: '12.5' })
})

test('an asynchronous schema is awaited', async () => {
  const slow = { late: { body: z.object({ ok: z.boolean().refine(async (ok) => ok) }) } }
  const outbox = createOutbox({ schema: database.schema, queues: slow })

  await client.query('begin')
  await outbox.publish(client, 'late', { ok: true })
  await expect(outbox.publish(client, 'late', { ok: false })).rejects.toMatchObject({
    code: 'OUTBOX_INVALID_BODY',
  })
  await client.query('commit')

  expect(await database.query('select count(*)::int as messages from outbox')).toEqual([{ messages: 1 }])
})

test('generation is stamped on every message', async () => {
  const outbox = createOutbox({ schema: database.schema, queues, generation: 7 })

  await statementsOf(async () => {
    await outbox.publish(client, 'orders', { orderId: 1 })
    await outbox.publishMany(client, 'orders', [{ orderId: 2 }])
  })

  expect(await database.query('select generation::int from outbox')).toEqual([
    { generation: 7 },
    { generation: 7 },
  ])
})

test('a queue without a map takes any name and any body', async () => {
  const outbox = createOutbox({ schema: database.schema })

  await statementsOf(() => outbox.publish(client, 'anything at all', [1, 'two']))

  expect(await database.query('select queue from outbox')).toEqual([{ queue: 'anything at all' }])
})

test('a transaction that has already failed is refused, not made worse', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })
  await client.query('begin')
  await expect(client.query('select 1/0')).rejects.toMatchObject({ code: '22012' })
  await expect(client.query('select 1')).rejects.toMatchObject({ code: '25P02' })
  sent = []

  const publishing = outbox.publish(client, 'orders', { orderId: 1 })

  await expect(publishing).rejects.toMatchObject({
    code: 'OUTBOX_NOT_IN_TRANSACTION',
    message: expect.stringMatching(/already failed/),
  })
  // Right after an error pg does not know its state yet, and Postgres is asked instead.
  expect(sent.filter((text) => text.includes('insert into'))).toEqual([])
  await client.query('rollback')
})

test('a transaction that failed a moment ago is refused, too', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })
  await client.query('begin')
  const failing = client.query('select 1/0')

  const publishing = outbox.publish(client, 'orders', { orderId: 1 })

  expect(await Promise.allSettled([failing, publishing])).toMatchObject([
    { reason: { code: '22012' } },
    { reason: { code: 'OUTBOX_NOT_IN_TRANSACTION', message: expect.stringMatching(/already failed/) } },
  ])
  await client.query('rollback')
})

test('every mistake is refused before the handle is asked to do anything', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })
  const untouchable = { query: () => expect.unreachable('no statement may be sent'), inTransaction: true }

  for (const wrong of [{ delayMs: -1 }, { key: '' }, { headers: { a: 1 } }, { id: 'x' }]) {
    await expect(outbox.publish(untouchable, 'orders', { orderId: 1 }, wrong as never)).rejects.toMatchObject(
      {
        code: expect.stringMatching(/^OUTBOX_INVALID_/),
      },
    )
  }
})

test('what is published or cancelled while a ROLLBACK is under way is refused, not committed on its own', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })
  await statementsOf(() =>
    outbox.publish(client, 'orders', { orderId: 0 }, { timerId: 'waits', delayMs: 60_000 }),
  )
  await client.query('begin')

  const rollback = client.query('rollback')
  const attempts: Promise<unknown>[] = [
    outbox.cancelTimer(client, 'orders', 'waits'),
    outbox.publish(client, 'orders', { orderId: 1 }),
    outbox.publishMany(client, 'orders', [{ orderId: 2 }]),
    outbox.publish(client, 'orders', { orderId: 3 }, { timerId: 't' }),
  ]

  const refused = { status: 'rejected', reason: { code: 'OUTBOX_NOT_IN_TRANSACTION' } }
  expect(await Promise.allSettled(attempts)).toMatchObject(attempts.map(() => refused))
  await rollback
  expect(await database.query('select timer_id from outbox')).toEqual([{ timer_id: 'waits' }])
})

test('messages published at once on one client are all written, though it cannot always tell its state', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })
  await client.query('begin')

  const receipts = await Promise.all(
    Array.from({ length: 50 }, (_, orderId) => outbox.publish(client, 'orders', { orderId })),
  )
  await client.query('commit')

  expect(new Set(receipts.map((receipt) => receipt.seq)).size).toBe(50)
  expect(await database.query('select count(*)::int as messages from outbox')).toEqual([{ messages: 50 }])
})

test('publishing before the tables were made says how to make them', async () => {
  const pool = database.pool({ max: 1 })
  const outbox = createOutbox({ database: pool, schema: database.schema, table: 'absent' })

  await expect(outbox.publishNow('orders', 1)).rejects.toMatchObject({
    code: 'OUTBOX_SCHEMA_MISSING',
    cause: { code: '42P01' },
  })
  await client.query('begin')
  await expect(outbox.publish(client, 'orders', 1)).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_MISSING' })
  await client.query('rollback')
  await pool.end()
})

test('a delay counts from the statement, not from the start of its transaction', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })
  await client.query('begin')
  await client.query('select pg_sleep(0.2)')

  await outbox.publish(client, 'orders', { orderId: 1 }, { delayMs: 1_000 })

  const { rows } = await client.query(
    `select due_at >= now() + interval '1.2 s' as later from ${database.schema}.outbox`,
  )
  await client.query('commit')
  expect(rows).toEqual([{ later: true }])
})

test('a replaced timer begins anew: no failure of the old message is left on it', async () => {
  const outbox = createOutbox({ schema: database.schema, queues })
  await statementsOf(() =>
    outbox.publish(client, 'orders', { orderId: 1 }, { timerId: 't', delayMs: 60_000 }),
  )
  await database.query(
    `update outbox set attempts = 3, deliveries = 4, first_attempt_at = now(), last_attempt_at = now(), last_error = 'old',
            created_at = now() - interval '1 day'`,
  )

  await statementsOf(() =>
    outbox.publish(client, 'orders', { orderId: 2 }, { timerId: 't', onConflict: 'replace' }),
  )

  expect(
    await database.query(
      `select attempts, deliveries, first_attempt_at, last_attempt_at, last_error,
              created_at > now() - interval '1 hour' as new from outbox`,
    ),
  ).toEqual([
    {
      attempts: 0,
      deliveries: 0,
      first_attempt_at: null,
      last_attempt_at: null,
      last_error: null,
      new: true,
    },
  ])
})

test('pending shows what waits: not the dead, not a lease that has ended, and not an error for a foreign row', async () => {
  const outbox = createOutbox({ schema: database.schema })
  await database.query(`insert into outbox (id, queue, body, headers, failed_at, lease_token, leased_until) values
    (gen_random_uuid(), 'q', '', null, now(), null, null),
    (gen_random_uuid(), 'q', '', null, null, gen_random_uuid(), now() - interval '1 day'),
    (gen_random_uuid(), 'q', '', null, null, gen_random_uuid(), now() + interval '1 day'),
    (gen_random_uuid(), 'q', '\\xff', 'null', null, null, null)`)

  await client.query('begin')
  const waiting = await outbox.pending(client)
  await client.query('commit')

  expect(waiting.map(({ inFlight, body, headers }) => ({ inFlight, body, headers }))).toEqual([
    { inFlight: false, body: null, headers: {} },
    { inFlight: true, body: null, headers: {} },
    { inFlight: false, body: undefined, headers: {} },
  ])
  await database.query('delete from outbox')
})
