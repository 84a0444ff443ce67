// The function that people call who have a SQL client: what it refuses, and what could be taken for its arguments. What it does is in replay.test.ts.
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { layDown } from '../support/dead-letters.ts'
import { callReplay } from '../support/replayers.ts'

const database = useDatabase()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema, logger: false }).migrate()
})

beforeEach(async () => {
  await database.query('truncate outbox, outbox_dead restart identity')
})

const id = '01890000-0000-7000-8000-00000000000a'
const everything = (): Promise<unknown> =>
  Promise.all([database.query('select * from outbox'), database.query('select * from outbox_dead')])
const call = async (values: readonly unknown[]): Promise<string> =>
  (await pool.query(callReplay, [...values])).rows[0].answer

describe('refuses, with a word on what to say, and changes nothing', () => {
  test.each<[string, readonly unknown[], RegExp]>([
    ['no id', [null, null, 'ann'], /^expected event_id to be the UUID of a message, got null$/],
    ['nobody', [id, null, null], /^expected p_replayed_by to be who replays, in 1 to 255 bytes, got null$/],
    ['an empty name', [id, null, ''], /p_replayed_by .*, got ''$/],
    ['a name of 256 bytes', [id, null, 'x'.repeat(256)], /p_replayed_by .*, got 'x{40}'$/],
    ['a name of 128 characters and 256 bytes', [id, null, 'é'.repeat(128)], /p_replayed_by .*, got 'é{40}'$/],
    ['a generation below zero', [id, -1, 'ann'], /^expected p_new_generation .*, got -1$/],
    ['a generation that JavaScript cannot hold', [id, '9007199254740992', 'ann'], /, got 9007199254740992$/],
  ])('%s', async (_, values, message) => {
    await layDown(database, 'moved', [{ id }])
    const before = await everything()

    await expect(call(values)).rejects.toMatchObject({
      code: '22023',
      message: expect.stringMatching(message),
      hint: expect.stringMatching(/select .*outbox_replay.*p_replayed_by => 'ann'/),
    })

    expect(await everything()).toEqual(before)
  })

  test('what is no UUID, as Postgres does', async () => {
    await expect(call(['x', null, 'ann'])).rejects.toMatchObject({ code: '22P02' })
  })

  test('in the same order, whatever else is wrong', async () => {
    await expect(call([null, -1, ''])).rejects.toThrow(/event_id/)
    await expect(call([id, -1, ''])).rejects.toThrow(/p_new_generation/)
  })
})

test.each([
  ['255 bytes', 'é'.repeat(127).concat('x'), null],
  ['quotes and a backslash', `o'ann \\ "$1" %`, 0],
  ['the largest generation', 'ann', Number.MAX_SAFE_INTEGER],
])('takes %s as they are', async (_, by, generation) => {
  await layDown(database, 'moved', [{ id, generation: 5 }])

  expect(await call([id, generation, by])).toBe('replayed')

  expect(await database.query('select generation, failure_history from outbox')).toMatchObject([
    {
      generation: String(generation ?? 5),
      failure_history: {
        cycles: [{ replayedBy: by, generationBefore: 5, generationAfter: generation ?? 5 }],
      },
    },
  ])
})

test('takes no column of somebody’s own for an argument, a variable or a part of the statement', async () => {
  const columns = [
    'event_id uuid',
    'p_new_generation bigint',
    'p_replayed_by text',
    'answer text',
    'told int',
  ]
  const tables = ['outbox', 'outbox_dead']
  for (const table of tables) {
    await database.query(`alter table ${table} ${columns.map((column) => `add ${column}`).join(', ')}`)
  }
  onTestFinished(async () => {
    const drop = columns.map((column) => `drop ${column.split(' ')[0]}`).join(', ')
    for (const table of tables) await database.query(`alter table ${table} ${drop}`)
  })
  const [moved, other] = await layDown(database, 'moved', [{}, {}])
  const [quarantined] = await layDown(database, 'quarantined', [{}])
  await database.query(`update outbox_dead set event_id = $1, p_replayed_by = 'nobody'`, [other])

  const answers = [await call([moved, 7, 'ann']), await call([quarantined, 7, 'ann'])]

  expect(answers).toEqual(['replayed', 'replayed'])
  expect(await database.query('select id from outbox_dead')).toEqual([{ id: other }])
  expect(await database.query('select generation, failure_history from outbox')).toMatchObject(
    [1, 2].map(() => ({ generation: '7', failure_history: { cycles: [{ replayedBy: 'ann' }] } })),
  )
})

test.each([
  ['standard_conforming_strings', 'off'],
  ['transform_null_equals', 'on'],
  ['datestyle', 'German'],
  ['intervalstyle', 'sql_standard'],
  ['timezone', 'Asia/Kathmandu'],
  ['plpgsql.variable_conflict', 'error'],
  ['plpgsql.extra_errors', 'all'],
  ['jit_above_cost', '0'],
])('means the same in a session with %s = %s', async (name, value) => {
  const client = await database.client()
  onTestFinished(() => client.end())
  await client.query(`select set_config($1, $2, false)`, [name, value])
  await layDown(database, 'moved', [{ id, failed_at: '2026-01-01T00:00:03.123456Z' }])

  const { rows } = await client.query(callReplay, [id, null, 'ann'])

  expect(rows).toEqual([{ answer: 'replayed' }])
  expect(await database.query('select failure_history from outbox')).toMatchObject([
    { failure_history: { cycles: [{ failedAt: '2026-01-01T00:00:03.123456Z' }] } },
  ])
})

test('replays many in one statement, each with an answer of its own', async () => {
  const ids = await layDown(database, 'moved', [{}, { timer: 't' }, { timer: 't' }])
  await layDown(database, 'quarantined', [{}])

  const { rows } = await pool.query(
    `select outbox_replay(id, null, 'ann') as answer from unnest($1::uuid[]) as id order by 1`,
    [[...ids, id]],
  )

  expect(rows.map(({ answer }) => answer)).toEqual(['not_found', 'replayed', 'replayed', 'timer_conflict'])
})

test('is looked up for the tables as they are, also by a session that knew them empty', async () => {
  const client = await database.client()
  onTestFinished(() => client.end())
  await database.query('analyze outbox, outbox_dead')
  // From the sixth time on a plan may be kept.
  for (let n = 0; n < 8; n++) await client.query(callReplay, [id, null, 'ann'])
  await database.query(
    `insert into outbox_dead (id, queue, body, attempts, deliveries, created_at, failure_reason, original_seq)
     select gen_random_uuid(), 'orders', '1', 1, 1, now(), 'rejected', n from generate_series(1, 20000) as n`,
  )
  const scans = `select seq_scan from pg_stat_xact_user_tables where relid = 'outbox_dead'::regclass`
  await client.query('begin')
  const before = await client.query(scans)

  await client.query(callReplay, [id, null, 'ann'])

  expect((await client.query(scans)).rows).toEqual(before.rows)
  await client.query('rollback')
})

test.each([`my "out" box's`, 'a\\b', '$postbox$', 'select'])('works for a table named %s', async (table) => {
  const outbox = createOutbox({ database: pool, schema: database.schema, table, logger: false })
  await outbox.migrate()
  const named = (suffix: string): string => `"${`${table}${suffix}`.replaceAll('"', '""')}"`
  await pool.query(
    `insert into ${named('_dead')} (id, queue, body, attempts, deliveries, created_at, failure_reason, original_seq)
     values ($1, 'orders', '1', 1, 1, now(), 'rejected', 1)`,
    [id],
  )

  const { rows } = await pool.query(`select ${named('_replay')}($1, null, 'ann') as answer`, [id])

  expect(rows).toEqual([{ answer: 'replayed' }])
  expect((await pool.query(`select status from ${named('_status')} where id = $1`, [id])).rows).toEqual([
    { status: 'pending' },
  ])
  expect(await outbox.deadLetters.get(id)).toBeNull()
})
