import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { createDeliveredTable } from './ledger.ts'
import { usePrograms } from './processes.ts'

const database = useDatabase()
const programs = usePrograms()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
  await createDeliveredTable(database)
})

test('a process that is asked to end under load ends by itself, and each message is either delivered or as if never claimed', async () => {
  const { url, schema } = database
  const outbox = createOutbox({ database: pool, schema })
  const bodies = Array.from({ length: 5_000 }, (_, index) => index)
  await inTransaction(pool, (tx) => outbox.publishMany(tx, 'orders', bodies))
  const options = { concurrency: 50, prefetch: 200, pollMs: { min: 20, max: 100 } }
  await using worker = programs.worker({ url, schema, options })
  await worker.reports.take(500)

  worker.kill('SIGTERM')

  expect(await worker.ended).toEqual({ code: 0, signal: null, output: '' })
  const [left] = await database.query<{ rows: number }>('select count(*)::int as rows from outbox')
  const [runs] = await database.query<{ rows: number }>('select count(*)::int as rows from delivered')
  expect(left?.rows).toBeGreaterThan(0)
  expect((left?.rows ?? 0) + (runs?.rows ?? 0)).toBe(bodies.length)
  expect(
    await database.query(
      `
        select id, lease_token, deliveries, attempts
          from outbox
         where lease_token is not null
            or deliveries <> 0
            or attempts <> 0
            or id in (select id from delivered)
      `,
    ),
  ).toEqual([])
})
