// Delivered messages that are kept: `delivered: 'table'`.
import { createOutbox, type Outbox } from 'postbox'
import { describe, expect, onTestFinished, test } from 'vitest'
import { recogniseDatabase } from '../../packages/postbox/src/adapters/recognise.ts'
import { resolveDeliveredPage } from '../../packages/postbox/src/core/delivered-options.ts'
import { getDelivered } from '../../packages/postbox/src/sql/get-delivered.ts'
import { listDelivered } from '../../packages/postbox/src/sql/list-delivered.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { purgeDelivered } from '../../packages/postbox/src/sql/purge-delivered.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { eventually } from '../support/signals.ts'
import { fewestPages, readStatement } from '../support/statement-plan.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench
const names = resolveNames({ schema: database.schema, table: 'outbox' })
const keeping = { delivered: 'table' } as const

const kept = (): Promise<{ id: string }[]> =>
  database.query('select * from outbox_delivered order by delivered_seq')
const forget = (): Promise<unknown> => database.query('delete from outbox_delivered')

describe('five hundred messages', () => {
  test('that are delivered are moved by the one statement that would delete them', async () => {
    onTestFinished(() => void forget())
    const pool = database.pool({ max: 5 })
    const statements = watchStatements(pool, database.schema)
    const outbox = outboxOf({ ...keeping, database: pool })
    const many = Array.from({ length: 500 }, (_, n) => n)
    const waiting: (() => void)[] = []
    const together = (): Promise<void> =>
      new Promise((resolve) => {
        waiting.push(resolve)
        if (waiting.length === many.length) for (const go of waiting) go()
      })
    outbox.subscribe('orders', together, { concurrency: many.length })
    await inTransaction(pool, (tx) => outbox.publishMany(tx, 'orders', many))
    const published = await messages()
    const drained = await outbox.drain()
    await pool.end()

    expect(drained).toMatchObject({ acked: 500 })
    expect(statements.counts()).toMatchObject({ delete_acked: 1 })
    expect(await messages()).toEqual([])
    // In the order of their seqs.
    expect((await kept()).map(({ id }) => id)).toEqual(published.map(({ id }) => id))
  })
})

describe('a table of delivered messages that cannot be written', () => {
  test.each([
    [
      'is missing',
      'alter table outbox_delivered rename to gone',
      'alter table gone rename to outbox_delivered',
    ],
    [
      'lacks a column',
      'alter table outbox_delivered rename column failure_history to gone',
      'alter table outbox_delivered rename column gone to failure_history',
    ],
  ])(
    'because it %s stops the claims until it is mended: nothing is lost, and no handler run again',
    async (_, breakage, mend) => {
      onTestFinished(() => void forget())
      const outbox = outboxOf(keeping)
      const runs: unknown[] = []
      outbox.subscribe('orders', async ({ body }, context) => {
        runs.push(body)
        if (body === 'follow') await context.publish('emails', 1)
      })
      await database.query(breakage)
      await using _running = await outbox.start()
      await inTransaction(bench.pool(), (tx) => outbox.publishMany(tx, 'orders', ['plain', 'follow']))
      await outbox.told.first('breaker_opened')
      const during = await messages()
      await outbox.publishNow('orders', 'late')
      await database.query(mend)
      await outbox.told.take('acked', 3)

      expect(during).toMatchObject(['a', 'b'].map(() => ({ lease_token: expect.any(String) })))
      expect(runs.toSorted()).toEqual(['follow', 'late', 'plain'])
      expect(outbox.told.of('settle_failed').every(({ delayMs }) => delayMs !== null)).toBe(true)
      expect(await kept()).toHaveLength(3)
      expect(await messages()).toMatchObject([{ queue: 'emails' }])
    },
  )

  test('because a role has no right to it stops the claims, too', async () => {
    onTestFinished(() => void forget())
    const role = `keeper_${database.schema}`
    await database.query(`create role ${role} login`)
    await database.query(`grant usage on schema ${database.schema} to ${role}`)
    await database.query(
      `grant select, insert, update, delete on all tables in schema ${database.schema} to ${role}`,
    )
    await database.query(`grant usage, select on all sequences in schema ${database.schema} to ${role}`)
    await database.query(`revoke insert on outbox_delivered from ${role}`)
    const url = new URL(database.url)
    url.username = role
    const pool = database.pool({ max: 5, connectionString: url.href })
    const outbox = outboxOf({ ...keeping, database: pool })
    let runs = 0
    outbox.subscribe('orders', async (_, context) => {
      runs++
      await context.publish('emails', 1)
    })
    {
      await using _running = await outbox.start()
      await outbox.publishNow('orders', 1)
      await outbox.told.first('breaker_opened')
      await database.query(`grant insert on outbox_delivered to ${role}`)
      await outbox.told.first('acked')
    }
    await pool.end()
    await database.query(`drop owned by ${role}`)
    await database.query(`drop role ${role}`)

    expect([runs, outbox.told.of('follow_on_failed')]).toEqual([1, []])
    expect(await kept()).toHaveLength(1)
  })

  test('for one message keeps that one leased and its neighbours going; stopped, it is delivered again when its lease ends', async () => {
    onTestFinished(() => void forget())
    await database.query(
      `alter table outbox_delivered add constraint good check (key is distinct from 'bad')`,
    )
    const outbox = outboxOf({ ...keeping, stopTimeoutMs: 50 })
    const runs: unknown[] = []
    outbox.subscribe('orders', ({ key }) => runs.push(key))
    const running = await outbox.start()
    await outbox.publishNow('orders', 1, { key: 'bad' })
    await outbox.told.first('settle_failed')
    await outbox.publishNow('orders', 2, { key: 'good' })
    await outbox.told.first('acked')
    const during = await messages()
    await running.stop()
    const isGivenUp = (): boolean => outbox.told.of('settle_failed').at(-1)?.delayMs === null
    await eventually(isGivenUp, { what: 'the last try' })
    const after = await messages()
    await database.query('alter table outbox_delivered drop constraint good')
    await database.query(`update outbox set leased_until = now() - interval '1 ms'`)
    const drained = await outbox.drain()

    expect(during).toMatchObject([{ key: 'bad', lease_token: expect.any(String) }])
    expect(after).toMatchObject([{ key: 'bad', attempts: 0, failed_at: null }])
    expect(drained).toMatchObject({ acked: 1 })
    expect(runs).toEqual(['bad', 'good', 'bad'])
    expect(outbox.told.of('settle_failed').at(-1)).toMatchObject({ write: 'delete', delayMs: null })
  })
})

describe('many delivered messages', () => {
  const fillKept = (rows: number): Promise<unknown> =>
    database.query(
      `insert into outbox_delivered (original_seq, id, queue, key, body, attempts, deliveries, created_at, delivered_at)
       select n, gen_random_uuid(), 'orders', 'k' || n % 100, '1', 0, 1, now(), now() - n * interval '1 minute'
         from generate_series(1, $1::int) as n`,
      [rows],
    )

  test.each([
    ['never analysed', async () => {}],
    ['analysed', async () => void (await database.query('analyze outbox_delivered'))],
  ])('are listed, got and purged by their indexes, on a table that was %s', async (_, analyse) => {
    onTestFinished(() => void forget())
    await database.query('truncate outbox_delivered')
    await database.query('alter table outbox_delivered set (autovacuum_enabled = off)')
    await fillKept(50_000)
    await analyse()
    const [{ id }] = (await kept()) as [{ id: string }]
    const middle = `${(Date.now() - 1_200_000_000) * 1_000}-1000`
    const pages = [
      {},
      { after: middle },
      { since: new Date(Date.now() - 540_000_000), until: new Date(Date.now() - 480_000_000) },
    ]
    const reads = [
      ...pages.map((options) => listDelivered(names, resolveDeliveredPage({ limit: 100, ...options }))),
      getDelivered(names, id),
    ]
    const statements = [...reads, purgeDelivered(names, { olderThanMs: 1_000, limit: 500 })]
    const readings = await Promise.all(statements.map((each) => readStatement(bench.pool(), each)))

    expect(readings.map(({ scans }) => scans[0])).toEqual([
      ...pages.map(() => 'Index Scan outbox_delivered_at'),
      expect.stringContaining('Scan outbox_delivered'),
      'Index Scan outbox_delivered_at',
    ])
    expect(readings.map(({ rows }) => rows)).toEqual([101, 101, 101, 1, 1_000])
    // Entries that the index itself passes over do not count as rows.
    for (const read of reads)
      expect(await fewestPages(59, () => readStatement(bench.pool(), read))).toBeLessThan(60)
  })

  test('are purged by two at once without either waiting, and each is counted once', async () => {
    onTestFinished(() => void forget())
    await fillKept(12_000)
    const outboxes: readonly Outbox[] = [outboxOf(), outboxOf()]

    const purged = await Promise.all(
      outboxes.map(({ delivered }) => delivered.purge({ olderThanMs: 3_600 * 60_000 + 30_000 })),
    )

    expect(purged[0]!.purged + purged[1]!.purged).toBe(8_400)
    expect(await kept()).toHaveLength(3_600)
  })

  test('are purged in batches: who cancels is told how many are gone', async () => {
    onTestFinished(() => void forget())
    await fillKept(12_000)
    const own = recogniseDatabase(bench.pool())!
    const cancel = new AbortController()
    const run: typeof own.run = async (statement) => {
      const rows = await own.run(statement)
      cancel.abort()
      return rows
    }
    const query = async (text: string, values: readonly unknown[]) => run({ name: '', text, values })
    const transaction: typeof own.transaction = (work) =>
      own.transaction(async (tx, handle) => {
        const result = await work(
          { query: (text: string, values: unknown[]) => tx.run({ name: '', text, values }) } as never,
          handle,
        )
        cancel.abort()
        return result
      })
    const outbox = createOutbox({
      database: { query, transaction } as never,
      schema: database.schema,
      logger: false,
    })

    expect(await outbox.delivered.purge({ olderThanMs: 0, signal: cancel.signal })).toEqual({ purged: 5_000 })
    expect(await kept()).toHaveLength(7_000)
  })
})
