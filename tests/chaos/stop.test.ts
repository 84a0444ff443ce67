import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { eventually } from '../support/signals.ts'
import { createDeliveredTable } from './ledger.ts'
import { type Child, expectEnd, usePrograms } from './processes.ts'

const database = useDatabase()
const programs = usePrograms()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
  await createDeliveredTable(database)
})

beforeEach(async () => {
  await database.query('truncate outbox, delivered')
})

const concurrency = 50
const prefetch = 200
// More than are handled before the word to end arrives, however late that is sent.
const published = 20_000

async function publishThousands(): Promise<void> {
  const outbox = createOutbox({ database: pool, schema: database.schema })
  const bodies = Array.from({ length: published }, (_, index) => index)
  await inTransaction(pool, (tx) => outbox.publishMany(tx, 'orders', bodies))
}

function startWorker(waits: boolean): Child {
  const { url, schema } = database
  const options = { concurrency, prefetch, pollMs: { min: 20, max: 100 } }
  return programs.worker({ url, schema, options, waits })
}

interface Counts {
  readonly left: number
  readonly leased: number
  readonly delivered: number
  /** Rows that are free, but look as if they had been delivered. */
  readonly marked: number
}

async function count(): Promise<Counts | undefined> {
  const [counts] = await database.query<Counts & Record<string, unknown>>(`
    select count(*)::int as left,
           count(lease_token)::int as leased,
           (select count(*) from delivered)::int as delivered,
           (count(*) filter (where lease_token is null and (deliveries <> 0 or attempts <> 0 or leased_until is not null)))::int as marked
      from outbox`)
  return counts
}

test('a process that is asked to end under load ends by itself, and each message is either delivered or as if never claimed', async () => {
  await publishThousands()
  await using worker = startWorker(false)
  await worker.reports.take(500)

  await expectEnd(worker)

  const { left = 0, ...counts } = (await count()) ?? {}
  expect(counts).toEqual({ leased: 0, delivered: published - left, marked: 0 })
  expect(left).toBeGreaterThan(0)
  expect(await database.query('select id from delivered where id in (select id from outbox)')).toEqual([])
})

test('a process that ends gives back at once what waits in its buffer, and waits for its handlers', async () => {
  await publishThousands()
  await using worker = startWorker(true)
  await eventually(async () => (await count())?.leased === concurrency + prefetch, { what: 'a full buffer' })
  await eventually(async () => (await count())?.delivered === concurrency, { what: 'all handlers to run' })

  worker.kill('SIGTERM')
  await eventually(async () => (await count())?.leased === concurrency, {
    what: 'the buffer to be given back',
  })

  expect(await count()).toEqual({ left: published, leased: concurrency, delivered: concurrency, marked: 0 })
  worker.tell({ kind: 'finish' })
  expect(await worker.ended).toEqual({ code: 0, signal: null, output: '' })
  const left = published - concurrency
  expect(await count()).toEqual({ left, leased: 0, delivered: concurrency, marked: 0 })
})
