// Plans as counts: which index, how many rows, how many pages. Larger tables are in ../large/plans.test.ts.
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { claimFresh } from '../../packages/postbox/src/sql/claim-fresh.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { useDatabase } from '../support/database.ts'
import {
  beliefs,
  describePlans,
  expectCheap,
  expectInOrder,
  explainedWorker,
  useFreshTable,
} from '../support/plan.ts'
import { fencesOf, fill, openWorker } from '../support/sessions.ts'
import { readStatement } from '../support/statement-plan.ts'

const database = useDatabase()
let pool: pg.Pool

const rows = 20_000
const room = 500
const generic = { plan_cache_mode: 'force_generic_plan' }

beforeAll(() => {
  pool = database.pool()
})

useFreshTable(database, () => pool)

describePlans(database, () => pool, { rows, retried: { messages: 200, rounds: 40 } })

test('a plan made without knowing the values looks at rows in the order of the indexes, too', async () => {
  await beliefs['that was analysed, with as many scheduled rows'](database, rows)
  const { worker, lastClaim } = explainedWorker(database, generic)

  await worker.take(room)

  expectInOrder(lastClaim())
})

test.each([
  ['with its values', {}],
  ['without them', generic],
])('a queue behind the rows of another is not found through them, planned %s', async (_, settings) => {
  await fill(database, { rows, queue: 'emails' })
  await fill(database, { rows: room })
  await database.query('analyze outbox')
  const { worker, lastClaim } = explainedWorker(database, settings)

  const held = await worker.take(room)

  expect(held).toHaveLength(room)
  expectCheap(lastClaim(), room)
})

test('a claim of twenty queues looks at no more rows than it may take of each', async () => {
  const queues = Array.from({ length: 20 }, (_, index) => `queue ${index}`)
  for (const queue of queues) await fill(database, { rows: rows / queues.length, queue })
  const { worker, lastClaim } = explainedWorker(database)

  const found = await worker.claimer.claim(
    queues.map((queue) => ({ queue, room: 50, leaseMs: 60_000 })),
    'claim',
  )

  expect(found.map(({ held }) => held.length)).toEqual(queues.map(() => 50))
  expectCheap(lastClaim(), 20 * 50)
})

describe.each([
  ['that was never analysed', false],
  ['that was analysed', true],
])('on a table of timers %s', (_, isAnalysed) => {
  const names = resolveNames({ schema: database.schema, table: 'outbox' })
  const fences = Array.from({ length: room }, (_, n) => ({
    seq: `${n + 1}`,
    token: randomUUID(),
    deliveriesBefore: 0,
  }))
  const retries = fences.map((fence) => ({ ...fence, delayMs: 5, error: 'no' }))

  test.each([
    ['retried', rescheduleRetried(names, retries, true)],
    ['snoozed', snoozeMessages(names, retries, true)],
    ['released', releaseLeases(names, fences, true)],
  ])('a timer that is %s looks for another of its name by the name', async (_, { text, values }) => {
    await database.query(
      `insert into outbox (id, queue, timer_id, body, due_at)
       select gen_random_uuid(), 'orders', 't' || n, '1', now() from generate_series(1, ${rows}) as n`,
    )
    if (isAnalysed) await database.query('analyze outbox')

    const plan = await pool.query(`explain (costs off) ${text}`, [...values])

    const scans = plan.rows.flatMap(
      (line) => String(line['QUERY PLAN']).match(/\w.* Scan.* on outbox t$/) ?? [],
    )
    expect(scans).toEqual(['Index Scan using outbox_timer on outbox t'])
  })
})

test.each(Object.entries(beliefs))(
  'a delete of what was claimed together looks at nothing else, on a table %s',
  async (_, believe) => {
    await believe(database, rows)
    const [first] = await database.query<{ seq: number }>(
      'select min(seq)::int as seq from outbox where failed_at is null',
    )
    const token = randomUUID()
    const fences = Array.from({ length: room }, (_, n) => ({ seq: `${first!.seq + n}`, token }))

    const names = resolveNames({ schema: database.schema, table: 'outbox' })
    const reading = await readStatement(pool, deleteAcked(names, fences))

    expect(reading.scans.join()).toMatch(/^(Index Scan outbox_pkey|Bitmap Heap Scan outbox)$/)
    expect(reading.rows).toBeLessThanOrEqual(room)
  },
)

test.each(Object.entries(beliefs))(
  'the least claim looks at no more rows than it may take, in the order of its index, on a table %s',
  async (_, believe) => {
    await believe(database, rows)
    const names = resolveNames({ schema: database.schema, table: 'outbox' })
    let taken = 0

    for (const size of [1, 100, room]) {
      const asked = { token: randomUUID(), queue: 'orders', room: size, leaseMs: 60_000, after: '0' }
      const { scans, rows: looked } = await readStatement(pool, claimFresh(names, asked))

      expect(scans.filter((scan) => !scan.includes('outbox_queues'))).toEqual([
        'Index Scan outbox_ready',
        'Tid Scan outbox',
      ])
      // What it finds is read once more, by its place; what was taken before is walked over.
      expect(looked).toBe(taken + 2 * size)
      taken += size
    }
  },
)

const preparedStatements: Statement<{ readonly name: string }> = {
  name: 'prepared_statements',
  // postgres.js keeps one of its own, about types.
  text: `select name from pg_prepared_statements where statement like '%"outbox"%'`,
  values: [],
}

test.each([
  ['pg', () => database.pool(), ['postbox_claim_messages', 'postbox_delete_acked']],
  ['postgres.js', () => database.postgresJs({ max: 1 }), []],
])(
  'of claims and settlements, only those that repeat are kept on their connection (%s)',
  async (_, connect, kept) => {
    const client = connect()
    onTestFinished(() => client.end())
    const worker = openWorker(client, database.schema)
    await fill(database, { rows: 20 })

    for (let count = 0; count < 10; count++) {
      const [retried, done] = fencesOf(await worker.take(2))
      await worker.run(
        rescheduleRetried(worker.names, [{ ...retried!, delayMs: 3_600_000, error: 'no' }], false),
      )
      await worker.run(deleteAcked(worker.names, [done!]))
    }

    const names = (await worker.run(preparedStatements)).map(({ name }) => name)
    expect(names.map((name) => name.replace(/_[0-9a-f]{16}$/, '')).toSorted()).toEqual(kept)
  },
)

test('a claim of paused queues looks at none of their messages, and finds out by one look at the table of queues', async () => {
  const queues = Array.from({ length: 20 }, (_, index) => `queue ${index}`)
  for (const queue of queues) await fill(database, { rows: rows / queues.length, queue })
  await database.query(
    `insert into outbox_queues (name, paused_at, paused_by) select 'queue ' || n, now(), 'jo' from generate_series(0, 19) as n`,
  )
  onTestFinished(async () => void (await database.query('delete from outbox_queues')))
  const { worker, lastClaim } = explainedWorker(database)

  const found = await worker.claimer.claim(
    queues.map((queue) => ({ queue, room: 50, leaseMs: 60_000 })),
    'claim',
  )

  expect(found.map(({ held, pause }) => [held.length, pause?.isPaused])).toEqual(queues.map(() => [0, true]))
  const { lanes, others } = lastClaim()
  expect([...lanes, ...others].map(({ rows }) => rows)).toEqual([0, 0, 0, 0, 0])
})
