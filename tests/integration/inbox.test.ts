// Messages that come twice, to consumers of every kind.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { createOutbox, type OwnHandle, TerminalError } from 'postbox'
import { describe, expect, onTestFinished, test } from 'vitest'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { purgeHandled } from '../../packages/postbox/src/sql/purge-handled.ts'
import { useDatabase } from '../support/database.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { useInbox } from '../support/inbox-bench.ts'
import { withSettings } from '../support/sessions.ts'
import { eventually } from '../support/signals.ts'

const database = useDatabase()
const bench = useInbox(database)
const { bill, billed } = bench

test('a message that was handled, died of something else and is replayed is not handled twice (D8)', async () => {
  const results: unknown[] = []
  const outbox = createOutbox({
    ...{ database: bench.pool, schema: database.schema, logger: false },
    defaults: { pollMs: { min: 5, max: 20 } },
  })
  outbox.subscribe('orders', async ({ id }) => {
    await inTransaction(bench.pool, async (tx) => {
      results.push(
        await outbox.inbox.once(tx, { consumer: 'billing', id }, () => bill(tx, id).then(() => 'billed')),
      )
    })
    if (results.length === 1) throw new TerminalError('after the commit')
  })
  onTestFinished(() => outbox.stop())
  const { id } = await outbox.publishNow('orders', { orderId: 1 })
  await outbox.start()

  await eventually(() => outbox.deadLetters.get(id), { what: 'the dead letter' })
  expect(await outbox.deadLetters.replay(id, { by: 'ann' })).toEqual({ replayed: true, lands: 'anywhere' })
  await eventually(() => results.length === 2, { what: 'the replay' })

  expect(results).toEqual([
    { ran: true, value: 'billed' },
    { ran: false, because: 'duplicate' },
  ])
  expect(await billed()).toEqual([id])
})

describe('behind a broker, where there is no outbox but its table', () => {
  const consumer = createOutbox({ schema: database.schema })

  /** Handles a record as it comes from a topic. */
  async function consume(id: string): Promise<unknown> {
    let result: unknown
    await inTransaction(bench.pool, async (client) => {
      const tx: OwnHandle = {
        query: async (text, values) => (await client.query(text, [...values])).rows,
        inTransaction: true,
      }
      result = await consumer.inbox.once(tx, { consumer: 'billing', id }, () => bill(client, id))
    })
    return result
  }

  test.each([
    ['a topic, a partition and an offset', 'orders-3@1187'],
    ['letters with accents', 'ünïcode'],
    ['quotes and parameters', `'; drop table invoices; -- "$1" \\x41`],
    ['line breaks', 'a\r\nb\u2028c'],
    ['an emoji', '🚚'],
    ['1,024 bytes', randomBytes(768).toString('base64')],
  ])('a record is handled once, whatever its id is made of: %s', async (_, id) => {
    const results = [
      await consume(id),
      await consume(id),
      await consume([...id].slice(0, -1).join('') || '.'),
    ]

    expect(results).toMatchObject([{ ran: true }, { ran: false, because: 'duplicate' }, { ran: true }])
    expect(await billed()).toEqual([id, [...id].slice(0, -1).join('') || '.'].sort())
  })

  test('a purge needs a database', async () => {
    await expect(consumer.inbox.purge({ olderThanMs: 1 })).rejects.toMatchObject({
      code: 'OUTBOX_NO_DATABASE',
    })
  })
})

test('the longest consumer with the longest id fits its index, however random they are', async () => {
  const names = {
    consumer: randomBytes(192).toString('base64').slice(0, 255),
    id: randomBytes(768).toString('base64'),
  }
  const tx = await bench.begin()

  expect(await bench.outbox.inbox.once(tx, names, () => 'done')).toEqual({ ran: true, value: 'done' })
  await tx.query('commit')
  const [row] = await database.query('select consumer, id from outbox_handled')
  expect([row, Buffer.byteLength(names.consumer), Buffer.byteLength(names.id)]).toEqual([names, 255, 1_024])
})

test('a role that may insert, select and delete marks needs nothing else', async () => {
  const role = `consumer_${randomBytes(4).toString('hex')}`
  await database.query(`create role ${role}`)
  onTestFinished(async () => {
    await database.query(`drop owned by ${role}`)
    await database.query(`drop role ${role}`)
  })
  await database.query(`grant usage on schema ${database.schema} to ${role}`)
  await database.query(`grant select, insert, delete on outbox_handled to ${role}`)
  const once = (tx: pg.PoolClient, work: () => unknown) =>
    bench.outbox.inbox.once(tx, { consumer: 'billing', id: 'a' }, work)
  const tx = await bench.begin()
  await tx.query(`set local role ${role}`)

  await expect(once(tx, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
  expect(await once(tx, () => 'done')).toEqual({ ran: true, value: 'done' })
  expect(await once(tx, () => 'done')).toEqual({ ran: false, because: 'duplicate' })
})

describe('a purge', () => {
  const rows = 3_500
  const fill = (consumer: string, age: string, count = rows): Promise<unknown> =>
    database.query(
      `insert into outbox_handled select $1, n::text, now() - $2::interval - n * interval '1 ms' from generate_series(1, $3::int) as n`,
      [consumer, age, count],
    )
  const left = async (): Promise<unknown> =>
    database.query('select consumer, count(*)::int from outbox_handled group by 1 order by 1')

  test('goes on until nothing is left that is old enough, and leaves the rest', async () => {
    await fill('billing', '2 hours')
    await fill('shipping', '1 minute')

    expect(await bench.outbox.inbox.purge({ olderThanMs: 3_600_000 })).toEqual({ purged: rows })
    expect(await left()).toEqual([{ consumer: 'shipping', count: rows }])
  })

  test('of one consumer leaves those of the others', async () => {
    await fill('billing', '2 hours')
    await fill('shipping', '2 hours')

    expect(await bench.outbox.inbox.purge({ olderThanMs: 3_600_000, consumer: 'billing' })).toEqual({
      purged: rows,
    })
    expect(await left()).toEqual([{ consumer: 'shipping', count: rows }])
  })

  test.each(['read committed', 'repeatable read', 'serializable'])(
    'may be run by many at once, where transactions are %s by default: each mark is counted once',
    async (isolation) => {
      await fill('billing', '2 hours')
      const settings = { default_transaction_isolation: isolation }
      const pool = database.pool({ connectionString: withSettings(database.url, settings) })
      onTestFinished(() => pool.end())
      const { inbox } = createOutbox({ database: pool, schema: database.schema, logger: false })

      const purges = Array.from({ length: 5 }, () => inbox.purge({ olderThanMs: 3_600_000 }))
      const counts = (await Promise.all(purges)).map(({ purged }) => purged)

      expect(counts.reduce((sum, count) => sum + count)).toBe(rows)
      expect(await left()).toEqual([])
    },
  )

  test.each([
    ['with its values', 'auto', false],
    ['without them', 'force_generic_plan', false],
    ['on a table that was analysed', 'auto', true],
  ])('looks at no more marks than it takes, planned %s', async (_, mode, isAnalysed) => {
    await fill('billing', '2 hours', 20_000)
    await fill('shipping', '1 minute', 20_000)
    if (isAnalysed) await database.query('analyze outbox_handled')
    const client = await bench.begin()
    await client.query(`set local plan_cache_mode = ${mode}`)
    const names = resolveNames({ schema: database.schema, table: 'outbox' })
    const { text, values } = purgeHandled(names, { olderThanMs: 3_600_000, consumer: null, limit: 1_000 })

    await client.query(`prepare purge as ${text}`)
    const parameters = values.map((value) => pg.escapeLiteral(String(value ?? ''))).join(', ')
    const execute = `execute purge(${parameters.replace(`''`, 'null')})`
    const { rows: lines } = await client.query(
      `explain (analyze, costs off, timing off, summary off) ${execute}`,
    )
    await client.query('deallocate purge')

    const plan = lines.map((line) => line['QUERY PLAN']).join('\n')
    expect(plan).toContain('using outbox_handled_at')
    const looked = [...plan.matchAll(/outbox_handled.*\(actual rows=([\d.]+)/g)].map(([, count]) =>
      Number(count),
    )
    expect(Math.max(...looked), plan).toBeLessThanOrEqual(1_000)
    expect(plan).not.toContain('Seq Scan')
  })
})
