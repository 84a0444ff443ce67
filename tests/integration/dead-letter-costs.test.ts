// What looking at many dead letters costs, as counts: which index, how many rows.
import type pg from 'pg'
import { createOutbox, type DeadLetters } from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { recogniseDatabase } from '../../packages/postbox/src/adapters/recognise.ts'
import {
  type DeadLetterListOptions,
  resolveDeadLetterFilter,
  resolveDeadLetterPage,
} from '../../packages/postbox/src/core/dead-letter-options.ts'
import { createDeadLetters } from '../../packages/postbox/src/dead-letters.ts'
import { countDeadLetters } from '../../packages/postbox/src/sql/count-dead-letters.ts'
import { countMessages } from '../../packages/postbox/src/sql/count-messages.ts'
import { getDeadLetter } from '../../packages/postbox/src/sql/get-dead-letter.ts'
import { listDeadLetters } from '../../packages/postbox/src/sql/list-dead-letters.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { useDatabase } from '../support/database.ts'
import { fillDead, layDown, type Place } from '../support/dead-letters.ts'
import { fill } from '../support/sessions.ts'
import { fewestPages, readStatement, type StatementReading } from '../support/statement-plan.ts'

const database = useDatabase()
const names = resolveNames({ schema: database.schema, table: 'outbox' })
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool()
})

/** Tables that no autovacuum looks at: what the database believes of them is up to the test. */
async function makeTables(): Promise<void> {
  await database.query(`drop schema ${database.schema} cascade`)
  await database.query(`create schema ${database.schema}`)
  await createOutbox({ database: pool, schema: database.schema, logger: false }).migrate()
  await database.query('alter table outbox set (autovacuum_enabled = off)')
  await database.query('alter table outbox_dead set (autovacuum_enabled = off)')
}

const readingOf = (statement: Statement<unknown>): Promise<StatementReading> => readStatement(pool, statement)

/** For the dead letters and for who looks for them: what lies where does not depend on how long a test takes to come. */
const now = new Date()
const dateAgo = (seconds: number): Date => new Date(now.getTime() - seconds * 1_000)

/** Long and short queues of dead letters in one place, three in the other, and a long queue of messages. */
async function fillTables(place: Place): Promise<void> {
  await makeTables()
  await fillDead(database, 50_000, { place, now })
  await fillDead(database, 500, { place, queue: 'emails', now: dateAgo(-1) })
  await fill(database, { rows: 20_000 })
  await database.query(`update outbox set timer_id = seq::text where failed_at is null and seq % 4 = 0`)
  await layDown(database, place === 'moved' ? 'quarantined' : 'moved', [{}, {}, { queue: 'emails' }])
}

/** A table of three rows is read as a whole by whoever has any sense. */
const onlyIndexes = ({ scans, rows }: StatementReading, lying: Place): void => {
  const whole = scans.filter((scan) => scan.startsWith('Seq Scan'))
  const large = whole.filter((scan) => lying === 'moved' || scan === 'Seq Scan outbox')
  expect({ large, rows }).toEqual({ large: [], rows })
}

const list = (options: DeadLetterListOptions): Promise<StatementReading> =>
  readingOf(listDeadLetters(names, resolveDeadLetterPage({ limit: 100, ...options })))

const analyse = async (): Promise<void> => void (await database.query('analyze outbox, outbox_dead'))

// Each takes back what it does, so what is known of the tables is all that changes on the way.
describe.each([
  ['moved', 'nothing is known', fillTables],
  ['moved', 'all is known', analyse],
  ['quarantined', 'nothing is known', fillTables],
  ['quarantined', 'all is known', analyse],
] as const)('on tables of many thousand rows, %s, of which %s', (lying, knowledge, prepare) => {
  beforeAll(() => prepare(lying))

  const middle = `${dateAgo(90).getTime() * 1_000}-${lying === 'moved' ? 'd' : 'q'}-1000`
  test.each([
    ['all', {}],
    ['a long queue', { queue: 'orders' }],
    ['a short queue', { queue: 'emails' }],
    ['a queue that has none', { queue: 'none' }],
    ['a time', { since: dateAgo(90), until: dateAgo(80) }],
    ['a queue and a time', { queue: 'orders', since: dateAgo(90) }],
    ['a page in the middle', { after: middle }],
    ['a page in the middle of a queue', { queue: 'orders', after: middle }],
  ])('the list of %s looks at little more than it shows', async (_what, options) => {
    const reading = await list(options)

    onlyIndexes(reading, lying)
    expect(reading.rows).toBeLessThanOrEqual(210)
    // Entries that the index itself passes over do not count as rows.
    expect(await fewestPages(59, () => list(options))).toBeLessThan(60)
  })

  test.each([
    ['all', {}],
    ['a long queue', { queue: 'orders' }],
    ['a short queue', { queue: 'emails' }],
    ['a time', { since: dateAgo(90) }],
  ])('the count of %s looks at no more rows than its bound, and one', async (_what, filter) => {
    const statement = countDeadLetters(names, resolveDeadLetterFilter(filter), 600)

    const reading = await readingOf(statement)

    onlyIndexes(reading, lying)
    expect(reading.rows).toBeLessThanOrEqual(601 + 3)
  })

  test('what waits is counted without looking at what failed in place', async () => {
    const reading = await readingOf(countMessages(names, ['orders', 'emails', 'none'], 600))

    expect(reading.scans.map((scan) => scan.split(' ').at(-1)).toSorted()).toEqual([
      ...['outbox_due', 'outbox_due', 'outbox_parked', 'outbox_queues_pkey', 'outbox_ready'],
    ])
    expect(reading.rows).toBeLessThanOrEqual(600)
  })

  test('one is got by its id', async () => {
    const table = lying === 'moved' ? 'outbox_dead' : 'outbox where failed_at is not null'
    const [{ id }] = (await database.query<{ id: string }>(`select id from ${table} limit 1`)) as [
      { id: string },
    ]

    const reading = await readingOf(getDeadLetter(names, id))

    onlyIndexes(reading, lying)
    expect(reading.rows).toBeLessThanOrEqual(1 + 3)
  })

  test.each(['moved', 'quarantined'] as const)(
    'one that was %s is replayed by its id, and its timer found by its name',
    async (place) => {
      const [id] = await layDown(database, place, [{ timer: 'a name' }])
      const rules = {
        by: 'me',
        generation: null,
        delayMs: 3_600_000,
        historyLimit: 20,
        wake: 'quiet',
      } as const

      const reading = await readingOf(replayDeadLetter(names, { id: id!, ...rules }))

      onlyIndexes(reading, lying)
      expect(reading.rows).toBeLessThanOrEqual(15)
      await database.query('delete from outbox where id = $1', [id])
    },
  )

  if (knowledge === 'all is known')
    test('the list of a reason that many have looks at little more than it shows', async () => {
      const reading = await list({ reason: 'rejected' })

      onlyIndexes(reading, lying)
      expect(reading.rows).toBeLessThanOrEqual(210)
    })
})

describe('count', () => {
  beforeAll(makeTables)
  beforeEach(async () => void (await database.query('truncate outbox, outbox_dead')))

  const counting = (countBound?: number): DeadLetters =>
    createDeadLetters({
      database: () => recogniseDatabase(pool)!,
      outbox: {
        names,
        wake: 'quiet',
        queues: null,
        codec: undefined,
        maxBodyBytes: 1,
      },
      ...(countBound === undefined ? {} : { countBound }),
    })

  test.each([
    [3, 2, { count: 5, atLeast: false }],
    [3, 3, { count: 5, atLeast: true }],
    [6, 0, { count: 5, atLeast: true }],
    [0, 6, { count: 5, atLeast: true }],
    [0, 5, { count: 5, atLeast: false }],
  ])(
    'of %i moved and %i quarantined ones stops at five, and says so',
    async (moved, quarantined, counted) => {
      await layDown(
        database,
        'moved',
        Array.from({ length: moved }, () => ({})),
      )
      await layDown(
        database,
        'quarantined',
        Array.from({ length: quarantined }, () => ({})),
      )

      expect(await counting(5).count()).toEqual(counted)
      expect(await counting(5).count({ queue: 'orders' })).toEqual(counted)
    },
  )

  test('stops at ten thousand', async () => {
    await fillDead(database, 10_001)

    expect(await counting().count()).toEqual({ count: 10_000, atLeast: true })
    expect(await counting().count({ queue: 'emails' })).toEqual({ count: 0, atLeast: false })
  })
})
