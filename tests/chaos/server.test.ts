import pg from 'pg'
import { createOutbox } from 'postbox'
import { test } from 'vitest'
import { longTestLimitMs } from '../support/patience.ts'
import { type Books, createDeliveredTable, openLedger } from './ledger.ts'
import { startPrivateServer } from './private-server.ts'
import { expectEnd, usePrograms } from './processes.ts'
import { createRandom } from './random.ts'

const programs = usePrograms()

function booksOf(pool: pg.Pool): Books {
  return {
    schema: 'public',
    query: async <Row extends pg.QueryResultRow>(text: string, values: unknown[] = []) =>
      (await pool.query<Row>(text, values)).rows,
  }
}

test(
  'a worker lives through the crash of its server, and delivers the rest when it is back',
  async () => {
    await using server = await startPrivateServer()
    const pool = new pg.Pool({ connectionString: server.url })
    pool.on('error', () => {})
    const books = booksOf(pool)
    await createOutbox({ database: pool }).migrate()
    await createDeliveredTable(books)
    const ledger = await openLedger(books, pool)
    const random = createRandom(5)
    const options = { concurrency: 4, prefetch: 4, leaseMs: 2_000, pollMs: { min: 20, max: 100 } }
    await using worker = programs.worker({ url: server.url, schema: 'public', options })
    await ledger.publishUntil(() => worker.reports.all.length >= 100, random)

    await server.crash()
    await worker.until('log', ({ level }) => level === 'error')
    await server.restart()
    await ledger.publish(random)
    await ledger.untilEmpty()

    await ledger.assertConserved()
    await expectEnd(worker)
    await pool.end()
  },
  longTestLimitMs,
)
