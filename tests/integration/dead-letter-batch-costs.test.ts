// What a batch costs, wherever its operation stands, as counts: which index, how many rows, how many pages.
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  type DeadLetterFilter,
  resolveDeadLetterFilter,
  resolveDeadLetterPage,
} from '../../packages/postbox/src/core/dead-letter-options.ts'
import { discardDeadLetters } from '../../packages/postbox/src/sql/discard-dead-letters.ts'
import { listDeadLetters } from '../../packages/postbox/src/sql/list-dead-letters.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { purgeDeadLetters } from '../../packages/postbox/src/sql/purge-dead-letters.ts'
import { replayDeadLetters } from '../../packages/postbox/src/sql/replay-dead-letters.ts'
import { sampleDeadLetters } from '../../packages/postbox/src/sql/sample-dead-letters.ts'
import { startOperation } from '../../packages/postbox/src/sql/start-operation.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { surveyDeadLetters } from '../../packages/postbox/src/sql/survey-dead-letters.ts'
import { useDatabase } from '../support/database.ts'
import { fillDead } from '../support/dead-letters.ts'
import { fill } from '../support/sessions.ts'
import { fewestPages } from '../support/statement-plan.ts'

const database = useDatabase()
const names = resolveNames({ schema: database.schema, table: 'outbox' })
const operation = '01890000-0000-7000-8000-00000000000a'
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool()
})

/** For the dead letters and for who looks for them: what lies where does not depend on how long a test takes to come. */
const now = new Date()
const microsAgo = (seconds: number): string => String((now.getTime() - seconds * 1_000) * 1_000)
const dateAgo = (seconds: number): Date => new Date(now.getTime() - seconds * 1_000)

const size = 500
const many = 50_000

/** Tables that no autovacuum looks at, full of living and dead: what the database believes of them is up to the test. */
async function fillTables(quarantined: number): Promise<void> {
  await database.query(`drop schema ${database.schema} cascade`)
  await database.query(`create schema ${database.schema}`)
  await createOutbox({ database: pool, schema: database.schema, logger: false }).migrate()
  await database.query('alter table outbox set (autovacuum_enabled = off)')
  await database.query('alter table outbox_dead set (autovacuum_enabled = off)')
  await fillDead(database, many, { now })
  await fillDead(database, 700, { queue: 'emails', now: dateAgo(-1) })
  await fill(database, { rows: 20_000 })
  await database.query(`update outbox set timer_id = 'live ' || seq where seq <= 5000`)
  await database.query(
    `insert into outbox (id, queue, body, due_at, failed_at, failure_reason)
     select gen_random_uuid(), case when n % 70 = 0 then 'emails' else 'orders' end, '1', 'infinity',
            $2::timestamptz - interval '1 minute' - n * interval '1 ms', 'rejected'
       from generate_series(1, $1::int) as n`,
    [quarantined, now.toISOString()],
  )
  await database.query(`update outbox_dead set timer_id = 'dead ' || dead_seq where dead_seq % 5 = 0`)
  const { text, values } = startOperation(names, {
    id: operation,
    kind: 'replay',
    by: 'me',
    filter: {},
    settings: {},
  })
  await database.query(text, [...values])
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly PlanNode[]
}

interface Reading {
  readonly scans: readonly string[]
  /** How often the table of the queues was looked at. */
  readonly queueLooks: number
  /** Rows that were looked at, those that were passed over included. */
  readonly rows: number
  /** Pages that the dearest look into the order of failures took: an index that is walked for nothing shows here, not in the rows. */
  readonly pages: number
}

const orders = ['outbox_dead_failed', 'outbox_dead_queue', 'outbox_failed_at', 'outbox_failed_queue']

/** Runs it, tells how, and takes it back. */
async function readingOf({ text, values }: Statement<unknown>): Promise<Reading> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const { rows } = await client.query(`explain (analyze, buffers, timing off, format json) ${text}`, [
      ...values,
    ])
    const plan: PlanNode = rows[0]['QUERY PLAN'][0].Plan
    const scans = below(plan).filter((node) => node['Relation Name'] && node['Node Type'] !== 'ModifyTable')
    const looked = scans.map(
      (node) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
    )
    const ordered = scans.filter((node) => orders.includes(node['Index Name'] ?? ''))
    const pages = ordered.map((node) => node['Shared Hit Blocks'] + node['Shared Read Blocks'])
    return {
      scans: scans.map((node) => `${node['Node Type']} ${node['Index Name'] ?? node['Relation Name']}`),
      queueLooks: scans
        .filter((node) => node['Relation Name'] === 'outbox_queues')
        .reduce((sum, node) => sum + node['Actual Loops'], 0),
      rows: looked.reduce((sum, each) => sum + each, 0),
      pages: Math.max(0, ...pages),
    }
  } finally {
    await client.query('rollback')
    client.release()
  }
}

function below(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(below)]
}

/** Nothing is read as a whole, but the operations, of which there is one. */
const onlyIndexes = ({ scans }: Reading): void =>
  expect(
    scans.filter((scan) => scan.startsWith('Seq Scan') && scan !== 'Seq Scan outbox_operations'),
  ).toEqual([])

const settings = { perSecond: 5, limit: null, generation: null, delayMs: 0 }
const batchAt = (filter: DeadLetterFilter, secondsAgo: number | null) => ({
  operation,
  size,
  stretch: {
    query: resolveDeadLetterFilter(filter),
    after:
      secondsAgo === null
        ? null
        : ({
            failedMicros: microsAgo(secondsAgo),
            place: 'moved',
            seq: '1',
          } as const),
    beforeMicros: microsAgo(0),
    sparesParked: true,
  },
  ...{ by: 'me', settings, historyLimit: 20, wake: 'quiet' as const },
})

// What is asked is taken back, so those after the first find the tables as they were.
describe.each([
  ['few that stayed among the messages, of which nothing is known', () => fillTables(3)],
  ['many that stayed among the messages, of which nothing is known', () => fillTables(20_000)],
  [
    'many that stayed among the messages, of which all is known',
    () => database.query('analyze outbox, outbox_dead'),
  ],
])('beside many dead letters and %s', (_, prepare) => {
  beforeAll(async () => void (await prepare()))

  const whole = dateAgo(3_600)
  describe.each([
    ['all', {}],
    ['a long queue', { queue: 'orders' }],
    ['a short queue', { queue: 'emails' }],
    ['a queue that has none', { queue: 'none' }],
    ['a time', { since: whole, until: dateAgo(75) }],
    ['a queue and a time', { queue: 'orders', since: whole }],
  ])('of %s', (_what, filter) => {
    test.each([
      ['at its beginning', null],
      ['in the middle', 85],
      ['near its end', 61],
    ])('a batch %s looks at little more than it takes', async (_where, secondsAgo) => {
      const batch = batchAt(filter, secondsAgo)

      const replay = await readingOf(replayDeadLetters(names, batch))
      const discard = await readingOf(discardDeadLetters(names, batch))

      onlyIndexes(replay)
      onlyIndexes(discard)
      // Chosen in either place, locked, looked for by name, written, deleted; and an operation.
      expect(replay.rows).toBeLessThanOrEqual(6 * size + 10)
      expect(discard.rows).toBeLessThanOrEqual(5 * size + 10)
    })
  })

  test.each([
    ['all', {}],
    ['a long queue', { queue: 'orders' }],
  ])('a batch of %s begins where it begins: it walks there over nothing', async (_what, filter) => {
    const bound = 60
    const pagesAt = (secondsAgo: number): Promise<number> =>
      fewestPages(bound, () =>
        readingOf(discardDeadLetters(names, { ...batchAt(filter, secondsAgo), size: 50 })),
      )

    for (const secondsAgo of [109, 85, 62]) expect(await pagesAt(secondsAgo)).toBeLessThanOrEqual(bound)
  })

  test.each([
    ['all', {}],
    ['a long queue', { queue: 'orders' }],
    ['a short queue', { queue: 'emails' }],
    ['a time', { since: whole }],
  ])('a dry run of %s looks at no more than its bound, and one', async (_what, filter) => {
    const query = resolveDeadLetterFilter(filter)

    const survey = await readingOf(surveyDeadLetters(names, { query, bound: 600 }))
    const sample = await readingOf(sampleDeadLetters(names, { query, limit: 10 }))

    onlyIndexes(survey)
    onlyIndexes(sample)
    expect(survey.rows).toBeLessThanOrEqual(601 + 10)
    expect(sample.rows).toBeLessThanOrEqual(2 * 10 + 10)
  })

  test.each(['moved', 'quarantined'] as const)(
    'a purge of what is %s looks at what it deletes',
    async (place) => {
      const purge = await readingOf(purgeDeadLetters(names, { place, olderThanMs: 60_000, limit: size }))
      const nothing = await readingOf(purgeDeadLetters(names, { place, olderThanMs: 3_600_000, limit: size }))

      onlyIndexes(purge)
      onlyIndexes(nothing)
      expect(purge.rows).toBeLessThanOrEqual(2 * size + 10)
      expect(nothing.rows).toBe(0)
    },
  )
})

test('a batch of an ordered queue asks once whether it is ordered, and not for each dead letter', async () => {
  await fillTables(3)
  await database.query(`update outbox_dead set key = 'key ' || dead_seq % 50`)
  await database.query(`insert into outbox_queues (name, message_order) values ('orders', 'key')`)

  const replay = await readingOf(replayDeadLetters(names, batchAt({}, null)))

  expect(replay.queueLooks).toBe(1)
})

describe('the list beside many dead letters', () => {
  beforeAll(() => fillTables(3))

  test.each([
    ['all', {}],
    ['a queue', { queue: 'orders' }],
  ])('of %s reads as few pages in the middle and at the end as at its beginning', async (_what, filter) => {
    const bound = 60
    const pagesAt = (secondsAgo: number): Promise<number> => {
      const after = `${microsAgo(secondsAgo)}-d-1`
      const page = listDeadLetters(names, resolveDeadLetterPage({ ...filter, after }))
      return fewestPages(bound, () => readingOf(page))
    }

    for (const secondsAgo of [62, 85, 109]) expect(await pagesAt(secondsAgo)).toBeLessThanOrEqual(bound)
  })

  test('goes by its end alone when a cursor lies behind it', async () => {
    const until = dateAgo(90)
    const late = `${microsAgo(0)}-d-1`
    const page = (after: object) => listDeadLetters(names, resolveDeadLetterPage({ until, ...after }))
    const seqsOf = async ({ text, values }: Statement<unknown>): Promise<unknown> =>
      (await pool.query(text, [...values])).rows.map(({ seq }) => seq)

    expect(await seqsOf(page({ after: late }))).toEqual(await seqsOf(page({})))
  })
})
