// The grants of SECURITY.md, as they stand there: enough for what they promise.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { createOutbox, noRetry, type Outbox, type OutboxEvent, type OutboxOptions } from 'postbox'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { layDown } from '../support/dead-letters.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { longWaitLimitMs } from '../support/patience.ts'
import { findPsql } from '../support/psql.ts'
import { callReplay } from '../support/replayers.ts'

const database = useDatabase()
const id = Math.random().toString(36).slice(2, 8)
const roles = ['publisher', 'subscriber', 'operator', 'replayer', 'auditor'] as const
type Role = (typeof roles)[number]
const nameOf = (role: Role): string => `postbox_${role}_${id}`

beforeAll(async () => {
  const { schema } = database
  await createOutbox({ database: database.pool(), schema }).migrate()
  for (const role of roles) await database.query(`create role ${nameOf(role)} login`)
  const security = readFileSync(join(import.meta.dirname, '..', '..', 'SECURITY.md'), 'utf8')
  const grants = security.match(/```sql\n([\s\S]*?)```/)?.[1] ?? ''
  const own = roles.reduce(
    (sql, role) => sql.replaceAll(new RegExp(`\\b${role}\\b`, 'g'), nameOf(role)),
    grants,
  )
  await database.query(own.replace('schema public', `schema ${schema}`))
})

afterAll(async () => {
  // After the schema's own afterAll would be too late: roles that have rights cannot be dropped.
  for (const role of roles) await database.query(`drop owned by ${nameOf(role)}; drop role ${nameOf(role)}`)
})

/** A connection of the role, that finds the schema. */
async function connected<T>(role: Role, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const address = new URL(inject('postgresUrl'))
  address.username = nameOf(role)
  const client = new pg.Client({ connectionString: address.href })
  await client.connect()
  try {
    await client.query(`set search_path = ${database.schema}, public`)
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Each of these, by itself. */
async function expectRefused(client: pg.Client, statements: readonly string[]): Promise<void> {
  for (const text of statements) {
    await expect(client.query(text), text).rejects.toMatchObject({ code: '42501' })
  }
}

const tables = ['', '_dead', '_delivered', '_handled', '_queues', '_operations', '_meta'].map(
  (suffix) => `outbox${suffix}`,
)
const everythingOnTables = tables.flatMap((table) => [
  `select from ${table}`,
  `insert into ${table} default values`,
  `delete from ${table}`,
  `truncate ${table}`,
  `drop table ${table}`,
])

/** An outbox whose every connection has the rights of the role and no others. */
async function as<T>(
  role: Role,
  work: (outbox: Outbox, pool: pg.Pool) => Promise<T>,
  options: OutboxOptions = {},
): Promise<T> {
  const connectionString = inject('postgresUrl')
  const pool = new pg.Pool({
    connectionString,
    options: `-c role=${nameOf(role)}`,
    max: 4,
    idleTimeoutMillis: 0,
  })
  try {
    return await work(
      createOutbox({ database: pool, schema: database.schema, logger: false, ...options }),
      pool,
    )
  } finally {
    await pool.end()
  }
}

describe('with the rights of', () => {
  test('a publisher everything is published, replaced, cancelled and looked at', async () => {
    await as('publisher', (outbox, pool) =>
      inTransaction(pool, async (tx) => {
        const timer = { timerId: 't', delayMs: 3_600_000 }
        await outbox.publish(tx, 'published', 1)
        await outbox.publishMany(tx, 'published', [2, 3])
        await outbox.publish(tx, 'published', 4, timer)
        await outbox.publish(tx, 'published', 5, { ...timer, onConflict: 'replace' })
        expect(await outbox.pending(tx, { queue: 'published' })).toHaveLength(4)
        expect(await outbox.cancelTimer(tx, 'published', 't')).toBe(true)
      }),
    )
  })

  test('a subscriber everything is delivered, followed on, retried, buried and counted', async () => {
    const events: OutboxEvent[] = []
    const onEvent = (event: OutboxEvent): void => void events.push(event)
    await as('publisher', async (outbox) => {
      for (const body of ['ack', 'follow', 'retry', 'die']) await outbox.publishNow('orders', body)
    })
    const drained = await as(
      'subscriber',
      async (outbox) => {
        const handle = async (body: unknown, context: { publish(queue: string, body: unknown): unknown }) => {
          if (body === 'follow') await context.publish('elsewhere', 1)
          if (body === 'retry' || body === 'die') throw new Error(String(body))
        }
        outbox.subscribe('orders', ({ body }, context) => handle(body, context), {
          retry: ({ error }) => ((error as Error).message === 'die' ? null : 3_600_000),
        })
        const counts = await outbox.drain()
        expect((await outbox.stats())['orders']?.scheduled.count).toBe(1)
        return counts
      },
      { onEvent },
    )

    expect(drained).toMatchObject({ acked: 2, retried: 1, dead: 1, isEmpty: true })
    expect(events.map(({ kind }) => kind)).toContain('dlq_written')
    expect(events.map(({ kind }) => kind)).not.toContain('settle_failed')
  })

  test('an operator dead letters are listed, read, counted and replayed, and the schema is validated', async () => {
    await as('publisher', (outbox) => outbox.publishNow('doomed', 1))
    await as('subscriber', async (outbox) => {
      outbox.subscribe('doomed', () => Promise.reject(new Error('no')), { retry: noRetry() })
      await outbox.drain()
    })

    await as('operator', async (outbox) => {
      const { items } = await outbox.deadLetters.list({ queue: 'doomed' })
      expect(items).toHaveLength(1)
      expect(await outbox.deadLetters.count({ queue: 'doomed' })).toMatchObject({ count: 1 })
      expect(await outbox.deadLetters.get(items[0]!.id)).toMatchObject({ queue: 'doomed' })
      expect(await outbox.deadLetters.replay(items[0]!.id, { by: 'jo' })).toEqual({
        replayed: true,
        lands: 'anywhere',
      })
      await outbox.validateSchema()
    })
  })

  test('an operator queues are paused and resumed, which nobody else may do, and which every subscriber sees', async () => {
    await as('publisher', (outbox) => outbox.publishNow('paused', 1))
    for (const role of ['publisher', 'subscriber', 'replayer', 'auditor'] as const) {
      const refused = as(role, (outbox) => outbox.pause('paused', { by: 'jo' }))
      await expect(refused, role).rejects.toMatchObject({ code: '42501' })
    }

    const drain = () =>
      as('subscriber', async (outbox) => {
        outbox.subscribe('paused', () => {})
        return outbox.drain()
      })
    await as('operator', async (outbox) => {
      expect(await outbox.pause('paused', { by: 'jo' })).toEqual({ paused: true })
      expect(await outbox.pause('paused', { by: 'ann' })).toMatchObject({ paused: false, by: 'jo' })
    })
    expect(await drain()).toMatchObject({ acked: 0, isEmpty: true })
    await as('operator', (outbox) => outbox.resume('paused', { by: 'jo' }))
    expect(await drain()).toMatchObject({ acked: 1, isEmpty: true })
  })

  test('an operator keys that wait are listed, resumed and skipped, and what holds one is replayed and discarded', async () => {
    const ordered = { queues: { lanes: { order: 'key' } } } as const
    const park = (): Promise<unknown> =>
      as(
        'subscriber',
        async (outbox) => {
          outbox.subscribe('lanes', (_, context) => context.reject('no'))
          for (const key of ['a', 'b', 'c', 'd']) await outbox.publishNow('lanes', 1, { key })
          await outbox.drain()
        },
        ordered,
      )
    await park()

    await as('operator', async (outbox) => {
      const { items } = await outbox.keys.list({ queue: 'lanes' })
      expect(items.map(({ key }) => key)).toEqual(['a', 'b', 'c', 'd'])
      const idOf = (n: number): string => items[n]!.head.id
      expect(await outbox.keys.resume('lanes', 'a', { by: 'jo' })).toEqual({ resumed: true, id: idOf(0) })
      expect(await outbox.keys.skip('lanes', 'b', { by: 'jo' })).toEqual({ skipped: true, id: idOf(1) })
      expect(await outbox.deadLetters.replay(idOf(2), { by: 'jo' })).toMatchObject({ lands: 'in_place' })
      expect(await outbox.deadLetters.replay(idOf(1), { by: 'jo' })).toMatchObject({ lands: 'behind_key' })
      expect(await outbox.deadLetters.discard(idOf(3), { by: 'jo' })).toMatchObject({ discarded: 1 })
    })
    await database.query(`delete from outbox_operations`)
  })

  test('a replayer a dead letter is replayed by the function, and everything else is refused', async () => {
    const [moved] = await layDown(database, 'moved', [{}])
    const [quarantined] = await layDown(database, 'quarantined', [{}])

    await connected('replayer', async (client) => {
      const answer = async (id: string): Promise<string> =>
        (await client.query(callReplay, [id, null, 'ann'])).rows[0].answer
      expect([await answer(moved!), await answer(quarantined!), await answer(moved!)]).toEqual([
        'replayed',
        'replayed',
        'not_found',
      ])
      await expectRefused(client, [
        ...everythingOnTables,
        'select from outbox_status',
        `select nextval('outbox_seq_seq')`,
        'alter function outbox_replay reset all',
        'alter function outbox_replay security invoker',
        'drop function outbox_replay',
        'create table mine ()',
      ])
    })
    const [rows] = await database.query(
      `select count(*)::int as count from outbox where id in ($1, $2) and failed_at is null`,
      [moved, quarantined],
    )
    expect(rows).toEqual({ count: 2 })
  })

  test('a replayer nothing of his own is run by the function, however he sets his path', async () => {
    const [id] = await layDown(database, 'moved', [{ timer: `path ${database.schema}` }])
    const evil = `evil_${database.schema.slice(-8)}`
    await database.query(`create schema ${evil} authorization ${nameOf('replayer')}`)

    const answer = await connected('replayer', async (client) => {
      const steal = `language plpgsql as 'begin raise exception ''stolen: %'', current_user; end'`
      for (const text of [
        `create function ${evil}.same(uuid, uuid) returns boolean ${steal}`,
        `create operator ${evil}.= (leftarg = uuid, rightarg = uuid, function = ${evil}.same)`,
        `create function ${evil}.join(jsonb, jsonb) returns jsonb ${steal}`,
        `create operator ${evil}.|| (leftarg = jsonb, rightarg = jsonb, function = ${evil}.join)`,
        `create function ${evil}.statement_timestamp() returns timestamptz ${steal}`,
        `create function ${evil}.to_char(timestamp, text) returns text ${steal}`,
        `create function ${evil}.pg_notify(text, text) returns void ${steal}`,
        `create function ${evil}.octet_length(text) returns int ${steal}`,
        `create domain ${evil}.uuid as text check (value = 'stolen')`,
        'create temporary table outbox (like pg_class)',
        'create temporary table outbox_dead (like pg_class)',
        `create domain pg_temp.text as pg_catalog.text check (value = 'stolen')`,
        `set search_path = pg_temp, ${evil}, pg_catalog`,
      ]) {
        await client.query(text)
      }
      const call = `select ${database.schema}.outbox_replay($1::pg_catalog.uuid, null, 'ann') as answer`
      return (await client.query(call, [id])).rows[0].answer
    })

    expect(answer).toBe('replayed')
    await database.query(`drop schema ${evil} cascade`)
  })

  test('a replayer with psql a dead letter is replayed, and who says nothing is told what to say', async (context) => {
    const psql = findPsql()
    if (psql === null)
      return context.skip('there is no psql: not in POSTGRES_BIN, PATH or /usr/lib/postgresql')
    const [dead] = await layDown(database, 'moved', [{ generation: 1 }])
    const address = new URL(inject('postgresUrl'))
    address.username = nameOf('replayer')
    const run = (sql: string): Promise<{ stdout: string }> =>
      promisify(execFile)(psql, [address.href, '-XAtq', '-v', 'VERBOSITY=verbose', '-c', sql], {
        timeout: longWaitLimitMs,
      })
    const call = (by: string): Promise<{ stdout: string }> =>
      run(`select ${database.schema}.outbox_replay('${dead}', 2, ${by})`)

    await expect(call('null')).rejects.toMatchObject({
      stderr: expect.stringMatching(/22023: expected p_replayed_by .* got null[\s\S]*HINT: {2}Say which/),
    })
    await expect(run(`select from ${database.schema}.outbox`)).rejects.toMatchObject({
      stderr: expect.stringContaining('42501'),
    })
    expect((await call(`'ann'`)).stdout.trim()).toBe('replayed')
    expect((await call(`'ben'`)).stdout.trim()).toBe('not_found')
    expect(await database.query('select generation from outbox where id = $1', [dead])).toEqual([
      { generation: '2' },
    ])
  })

  test('an auditor all messages are seen, and everything else is refused', async () => {
    const [dead] = await layDown(database, 'moved', [{ body: 'seen', last_error: 'why' }])

    await connected('auditor', async (client) => {
      const { rows } = await client.query('select * from outbox_status where id = $1', [dead])
      expect(rows).toMatchObject([{ status: 'failed', last_error: 'why', body: Buffer.from('seen') }])
      await expectRefused(client, [
        ...everythingOnTables,
        `select outbox_replay('${dead}', null, 'ann')`,
        'create or replace view outbox_status as select 1',
        'drop view outbox_status',
      ])
      // It is a view of several tables: what cannot be written is not a matter of rights.
      await expect(client.query('delete from outbox_status')).rejects.toThrow(
        /permission denied|cannot delete/,
      )
    })
  })

  test.each(['publisher', 'subscriber', 'operator', 'auditor'] as const)(
    'a role that was not granted the function it is refused: %s',
    async (role) => {
      await connected(role, (client) =>
        expectRefused(client, [`select outbox_replay(gen_random_uuid(), null, 'ann')`]),
      )
    },
  )

  test('an operator many dead letters are replayed, resumed, discarded and purged, and what was done is listed', async () => {
    await as('publisher', (outbox) =>
      Promise.all([1, 2, 3].map((n) => outbox.publishNow('many', n, { key: `${n}` }))),
    )
    await as('subscriber', async (outbox) => {
      outbox.subscribe('many', () => Promise.reject(new Error('no')), { retry: noRetry() })
      await outbox.drain()
    })

    await as('operator', async ({ deadLetters, delivered, inbox }) => {
      const [by, signal] = ['jo', AbortSignal.abort()]
      const seen = await deadLetters.replayAll({ queue: 'many' }, { by, dryRun: true })
      const { operation } = await deadLetters.replayAll({ queue: 'many', key: '1' }, { by, signal })
      expect(await deadLetters.resume(operation, { by })).toMatchObject({ replayed: 1 })
      expect(await deadLetters.discard({ key: '2' }, { by })).toMatchObject({ discarded: 1 })
      expect(await deadLetters.discard({ key: '4' }, { by })).toMatchObject({ discarded: 0 })
      expect((await deadLetters.purge({ olderThanMs: 0 })).purged).toBeGreaterThanOrEqual(1)
      expect(await inbox.purge({ olderThanMs: 0 })).toEqual({ purged: 0 })
      expect(await delivered.purge({ olderThanMs: 0 })).toEqual({ purged: 0 })
      expect((await deadLetters.list()).items).toEqual([])
      expect((await deadLetters.operations()).items).toHaveLength(2)
      expect(seen).toMatchObject({ matched: { count: 3 } })
    })
  })
})
