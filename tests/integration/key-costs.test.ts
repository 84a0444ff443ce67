// What looking at keys that wait, and deciding about one, costs: which index, how many rows, whatever lies around.
import type pg from 'pg'
import { createOutbox, type KeyPage } from 'postbox'
import { beforeAll, describe, expect, test } from 'vitest'
import { type KeyListOptions, resolveKeyList } from '../../packages/postbox/src/core/key-options.ts'
import { countMessages } from '../../packages/postbox/src/sql/count-messages.ts'
import { discardDeadLetter } from '../../packages/postbox/src/sql/discard-dead-letter.ts'
import { listKeys, mostLaterLooks } from '../../packages/postbox/src/sql/list-keys.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import { resumeKey } from '../../packages/postbox/src/sql/resume-key.ts'
import { skipKey } from '../../packages/postbox/src/sql/skip-key.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { useDatabase } from '../support/database.ts'
import { readStatement, type StatementReading } from '../support/statement-plan.ts'

const database = useDatabase()
const names = resolveNames({ schema: database.schema, table: 'outbox' })
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool()
})

const columns = 'id, queue, body, key, later_key, due_at, attempts, failed_at, failure_reason, parked_at'
const dead = `now() - interval '1 h', 'rejected'`

/** Rows of `orders` for each n of a series: key, later key, when due, and what it died of. */
const insert = (count: number, values: string): Promise<unknown> =>
  database.query(
    `insert into outbox (${columns}) select gen_random_uuid(), 'orders', '1', ${values} from generate_series(1, ${count}) as n`,
  )

async function createTables(): Promise<void> {
  await database.query(`drop schema ${database.schema} cascade`)
  await database.query(`create schema ${database.schema}`)
  await createOutbox({ database: pool, schema: database.schema, logger: false }).migrate()
  await database.query('alter table outbox set (autovacuum_enabled = off)')
  await database.query(`insert into outbox_queues (name, message_order) values ('orders', 'key')`)
}

/** Many keys, one of which many wait for; many dead in place, timers, retries, and some keys that are parked. */
async function fillTables(): Promise<void> {
  await createTables()
  await insert(500, `'p' || lpad(n::text, 5, '0'), null, 'infinity', 1, ${dead}, now()`)
  await insert(1, `'hot', null, 'infinity', 1, ${dead}, now()`)
  await insert(20_000, `'k' || n, null, null, 0, null, null, null`)
  await insert(20_000, `'hot', null, null, 0, null, null, null`)
  await insert(20_000, `'k' || n, null, 'infinity', 1, ${dead}, null`)
  await insert(300, `'r' || n, null, now() + interval '1 h' + n * interval '1 s', 1, null, null, null`)
  await insert(20_000, `null, 't' || n, now() + interval '2 h' + n * interval '1 s', 0, null, null, null`)
}

const readingOf = (statement: Statement<unknown>): Promise<StatementReading> => readStatement(pool, statement)
const list = (options: Partial<KeyListOptions>): Promise<StatementReading> =>
  readingOf(listKeys(names, resolveKeyList({ queue: 'orders', limit: 100, ...options })))

const onlyIndexes = ({ scans }: StatementReading): void => {
  // The table of queues has one row.
  expect(scans.filter((scan) => scan.startsWith('Seq Scan') && scan !== 'Seq Scan outbox_queues')).toEqual([])
}

const analyse = async (): Promise<void> => void (await database.query('analyze outbox'))

describe.each([
  ['nothing is known', async () => {}],
  ['all is known', analyse],
] as const)('on a table of 80,000 rows of which %s', (_, learn) => {
  beforeAll(async () => {
    await fillTables()
    await learn()
  })

  test.each([
    ['those that are parked', { blocked: 'parked' }, 1_001 + 210],
    ['those that are parked, from the middle', { blocked: 'parked', after: 'p-p00250' }, 210],
    ['both', {}, 1_001 + 210],
    ['those that are retried, among timers', { blocked: 'retrying' }, mostLaterLooks + 210],
    [
      'those that are retried, from the middle',
      { blocked: 'retrying', after: `r-${(Date.now() + 3 * 3_600_000) * 1_000}-1` },
      mostLaterLooks + 10,
    ],
    ['none of another queue', { queue: 'none' }, 2],
  ] as const)('the list of %s looks at little more than it shows', async (_what, options, rows) => {
    const reading = await list(options)

    onlyIndexes(reading)
    expect(reading.rows).toBeLessThanOrEqual(rows)
    // Entries that the index itself passes over do not count as rows.
    expect(reading.pages).toBeLessThan(800)
  })

  test('of those that wait for a key no more than a thousand are counted, and one', async () => {
    const reading = await list({ after: 'p-g', limit: 1 })

    onlyIndexes(reading)
    expect(reading.rows).toBeLessThanOrEqual(1_001 + 5)
  })

  test('a page that shows nothing says where to go on, and every key is found in the end', async () => {
    const { keys } = createOutbox({ database: pool, schema: database.schema, logger: false })
    const found: string[] = []
    let pages = 0
    for (let after: string | null = 'p-zzz'; after !== null; pages++) {
      const page: KeyPage = await keys.list({ queue: 'orders', limit: 200, after })
      found.push(...page.items.map(({ key }) => key))
      after = page.next
    }

    expect(found).toHaveLength(300)
    expect(new Set(found).size).toBe(300)
    // 20,300 rows, 2,000 at a time, and one page that its limit ends.
    expect(pages).toBeLessThanOrEqual(13)
  })

  test('parked keys are counted by their index', async () => {
    const reading = await readingOf(countMessages(names, ['orders'], 600))

    onlyIndexes(reading)
    expect(reading.scans).toContainEqual(expect.stringContaining('outbox_parked'))
    expect(reading.rows).toBeLessThanOrEqual(4 * 600)
  })

  const rules = { by: 'me', historyLimit: 20, wake: 'quiet' } as const
  test.each([
    ['resumed', () => resumeKey(names, { queue: 'orders', key: 'p00001', ...rules })],
    [
      'skipped',
      () => skipKey(names, { queue: 'orders', key: 'hot', operation: crypto.randomUUID(), ...rules }),
    ],
  ])('a key is %s by looking at two messages of it', async (_how, statement) => {
    const reading = await readingOf(statement())

    onlyIndexes(reading)
    expect(reading.rows).toBeLessThanOrEqual(8)
  })

  test.each([
    ['replayed in its place', `key = 'p00002'`],
    ['replayed behind its key', `key = 'k7' and failed_at is not null`],
  ])('one is %s by its id', async (_how, where) => {
    const [{ id }] = (await database.query(`select id from outbox where ${where}`)) as [{ id: string }]

    const reading = await readingOf(replayDeadLetter(names, { id, generation: null, delayMs: 0, ...rules }))

    onlyIndexes(reading)
    expect(reading.rows).toBeLessThanOrEqual(15)
  })

  test('one that holds its key is discarded by its id', async () => {
    const [{ id }] = (await database.query(`select id from outbox where key = 'p00003'`)) as [{ id: string }]

    const reading = await readingOf(
      discardDeadLetter(names, { id, by: 'me', operation: crypto.randomUUID(), wake: 'quiet' }),
    )

    onlyIndexes(reading)
    expect(reading.rows).toBeLessThanOrEqual(8)
  })
})

describe.each([1, 3])('where all others are of %i keys', (keys) => {
  beforeAll(async () => {
    await createTables()
    await insert(2, `'rare' || n, null, 'infinity', 1, ${dead}, now()`)
    await insert(20_000, `'often' || n % ${keys}, null, null, 0, null, null, null`)
    await analyse()
  })

  const by = () => ({ by: 'me', operation: crypto.randomUUID(), wake: 'quiet' }) as const
  test.each([
    ['skipping a key of one message', async () => skipKey(names, { queue: 'orders', key: 'rare1', ...by() })],
    [
      'skipping a key without messages',
      async () => skipKey(names, { queue: 'orders', key: 'none', ...by() }),
    ],
    [
      'discarding the only message of a key',
      async () => {
        const [row] = await database.query(`select id from outbox where key = 'rare2'`)
        return discardDeadLetter(names, { id: String(row?.['id']), ...by() })
      },
    ],
  ])('%s does not walk over the messages of others', async (_what, statement) => {
    const reading = await readingOf(await statement())

    onlyIndexes(reading)
    expect(reading.rows).toBeLessThanOrEqual(8)
  })
})
