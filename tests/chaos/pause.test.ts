import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { eventually } from '../support/signals.ts'
import { createDeliveredTable, openLedger } from './ledger.ts'
import { type Child, expectEnd, usePrograms } from './processes.ts'

const database = useDatabase()
const programs = usePrograms()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
  await createDeliveredTable(database)
})

const pollMs = { min: 20, max: 100 }

function start(leaseMs: number, concurrency: number): Child {
  const { url, schema } = database
  const prefetch = 3
  return programs.worker({ url, schema, options: { leaseMs, concurrency, prefetch, pollMs }, waits: true })
}

const rows = () => database.query('select id, lease_token, leased_until, deliveries from outbox order by seq')

async function startedBy({ pid }: Child): Promise<readonly string[]> {
  const found = await database.query<{ id: string }>('select id from delivered where worker = $1', [pid])
  return found.map(({ id }) => id)
}

test('a process that stood still past its leases changes nothing when it goes on, starts nothing of its own, and says so', async () => {
  const ledger = await openLedger(database, pool)
  // Long enough for a slow machine to renew it, and short enough to wait for its end.
  await using paused = start(4_000, 1)
  await paused.until('ready')
  const first = await ledger.publishOne('runs when the process stands still')
  await paused.until('delivered', ({ id }) => id === first)
  const waiting = [await ledger.publishOne(1), await ledger.publishOne(2), await ledger.publishOne(3)]
  await eventually(async () => (await rows()).every((row) => row['lease_token'] !== null), {
    what: 'the others to wait in its buffer',
  })
  paused.kill('SIGSTOP')

  await using other = start(600_000, 10)
  for (const id of [first, ...waiting]) await other.until('delivered', (report) => report.id === id)
  const before = await rows()
  paused.tell({ kind: 'finish' })
  paused.kill('SIGCONT')
  for (const id of [first, ...waiting]) {
    await paused.until('log', (report) => report.id === id && report.message.includes('lease lost'))
  }

  expect(await rows()).toEqual(before)
  expect(await startedBy(paused)).toEqual([first])
  other.tell({ kind: 'finish' })
  await ledger.untilEmpty()
  await expectEnd(other)
  const later = await ledger.publishOne('for the process that stood still')
  await paused.until('delivered', ({ id }) => id === later)
  paused.tell({ kind: 'finish' })
  await ledger.untilEmpty()
  expect(await ledger.assertConserved()).toEqual([{ id: first, workers: [paused.pid, other.pid] }])
  await expectEnd(paused)
})
