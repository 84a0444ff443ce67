// The costs of ../integration/dead-letter-costs.test.ts with five million dead letters, in either place, on tables that were never analysed.
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  type DeadLetterListOptions,
  resolveDeadLetterFilter,
  resolveDeadLetterPage,
} from '../../packages/postbox/src/core/dead-letter-options.ts'
import { countDeadLetters } from '../../packages/postbox/src/sql/count-dead-letters.ts'
import { countMessages } from '../../packages/postbox/src/sql/count-messages.ts'
import { getDeadLetter } from '../../packages/postbox/src/sql/get-dead-letter.ts'
import { listDeadLetters } from '../../packages/postbox/src/sql/list-dead-letters.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { peekPending } from '../../packages/postbox/src/sql/peek-pending.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { useDatabase } from '../support/database.ts'
import { fillDead, layDown, type Place } from '../support/dead-letters.ts'
import { expectCheap, explainedWorker } from '../support/plan.ts'
import { fill } from '../support/sessions.ts'
import { readStatement, type StatementReading } from '../support/statement-plan.ts'

const database = useDatabase()
const names = resolveNames({ schema: database.schema, table: 'outbox' })
const many = 5_000_000
const live = 100_000
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool({ statement_timeout: 0 })
})

async function fillTables(place: Place): Promise<void> {
  await database.query(`drop schema ${database.schema} cascade`)
  await database.query(`create schema ${database.schema}`)
  await createOutbox({ database: pool, schema: database.schema, logger: false }).migrate()
  await database.query('alter table outbox set (autovacuum_enabled = off)')
  await database.query('alter table outbox_dead set (autovacuum_enabled = off)')
  await fillDead(pool, many, { place })
  await fillDead(pool, 500, { place, queue: 'emails' })
  await fill(pool, { rows: live })
}

/** What it read; how long it took is said, not judged. */
async function read(what: string, statement: Statement<unknown>): Promise<StatementReading> {
  const startedAt = performance.now()
  const reading = await readStatement(pool, statement)
  const ms = (performance.now() - startedAt).toFixed(1)
  console.info(`${what}: ${reading.rows} rows, ${reading.pages} pages, ${ms} ms`)
  return reading
}

describe.each([
  ['moved', 'd'],
  ['quarantined', 'q'],
] as const)('with five million dead letters that are %s', (place, letter) => {
  beforeAll(() => fillTables(place), 1_800_000)

  test.each([
    ['all', {}],
    ['a queue', { queue: 'orders' }],
    ['a short queue', { queue: 'emails' }],
    ['a time', { since: new Date(Date.now() - 3_600_000) }],
  ])('a count of %s visits at most 10,001 rows', async (what, filter) => {
    const statement = countDeadLetters(names, resolveDeadLetterFilter(filter), 10_000)
    const { rows } = await read(`count of ${what}, ${place}`, statement)

    expect(rows).toBeLessThanOrEqual(10_001)
  })

  const middle = `${(Date.now() - 3_000_000) * 1_000}-${letter}-1000`
  test.each<[string, DeadLetterListOptions]>([
    ['all', {}],
    ['a queue', { queue: 'orders' }],
    ['a short queue', { queue: 'emails' }],
    ['all, from the middle on', { after: middle }],
    ['a queue, from the middle on', { queue: 'orders', after: middle }],
  ])('a page of %s visits no more rows than it shows, and one', async (what, options) => {
    const page = resolveDeadLetterPage({ limit: 100, ...options })
    const { rows, pages } = await read(`page of ${what}, ${place}`, listDeadLetters(names, page))

    // Moved ones are sorted by seq within a microsecond, which takes one more to know that it is over.
    expect(rows).toBeLessThanOrEqual(102)
    expect(pages).toBeLessThan(400)
  })

  test('one is got by its id', async () => {
    const [id] = await layDown(pool, place, [{}])
    const { rows, pages } = await read(`get, ${place}`, getDeadLetter(names, id!))

    expect(rows).toBeLessThanOrEqual(1)
    expect(pages).toBeLessThan(40)
  })

  // Not cheap, and it need not be: it reads in the order of seq, so it walks over what failed below what waits (docs/decisions/0028).
  test.runIf(place === 'quarantined')('what waits is read past all of them', async () => {
    const peek = peekPending(names, { queue: null, limit: 10, mark: null })
    const { rows } = await read('pending, quarantined', peek)

    expect(rows).toBeGreaterThanOrEqual(many + 10)
  })

  test('claims and counts of what waits do not walk over them', async () => {
    const { worker, lastClaim } = explainedWorker(database)
    const held = await worker.take(500)
    const first = lastClaim()
    await worker.take(500, { kind: 'sweep' })
    const { rows } = await read(`stats, ${place}`, countMessages(names, ['orders', 'emails'], 10_000))

    expect(held).toHaveLength(500)
    expectCheap(first, 500)
    expectCheap(lastClaim(), 1_000)
    expect(rows).toBeLessThanOrEqual(10_000)
    await database.query('truncate outbox')
  })
})
