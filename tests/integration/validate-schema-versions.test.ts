import type pg from 'pg'
import { createOutbox, type Outbox, type OutboxOptions } from 'postbox'
import { beforeAll, describe, expect, test } from 'vitest'
import { currentVersion } from '../../packages/postbox/src/sql/migrations/index.ts'
import { useDatabase } from '../support/database.ts'
import { openPGlite } from '../support/pglite.ts'
import { differencesOf, mend, objects } from './validate-schema-mending.ts'

describe('on a server', () => {
  const database = useDatabase()
  let pool: pg.Pool

  beforeAll(() => {
    pool = database.pool({ max: 1 })
  })

  const query = (text: string, values?: unknown[]): Promise<Record<string, unknown>[]> =>
    database.query(text, values)
  const named = (relation: string): string => `"${database.schema}"."${relation}"`
  const outboxOn = (table: string, options: OutboxOptions = {}): Outbox =>
    createOutbox({ database: pool, schema: database.schema, table, logger: false, ...options })
  const migrated = async (table: string, options?: OutboxOptions): Promise<Outbox> => {
    const outbox = outboxOn(table, options)
    await outbox.migrate()
    return outbox
  }
  const proveMended = async (outbox: Outbox): Promise<void> => {
    await mend(query, await differencesOf(outbox))
    expect(await differencesOf(outbox)).toEqual([])
  }

  test('a schema that was never made is told from one that differs', async () => {
    const missing = { code: 'OUTBOX_SCHEMA_MISSING', hint: expect.stringMatching(/migrate/) }
    await expect(outboxOn('absent').validateSchema()).rejects.toMatchObject(missing)
    await expect(outboxOn('absent', { schema: 'no such' }).validateSchema()).rejects.toMatchObject(missing)
  })

  test('a schema of which one table is left is mended, each table by its own SQL', async () => {
    const outbox = await migrated('left')
    await query('drop table left_dead, left_handled, left_queues, left_meta cascade')
    await query('drop table "left"; create table "left" ()')

    expect(objects(await differencesOf(outbox))).toEqual(
      expect.arrayContaining([`table ${named('left_dead')}`, `version in ${named('left_meta')}`]),
    )
    await proveMended(outbox)
    await outbox.migrate()
  })

  describe('an earlier version', () => {
    const makeOlder = `drop function older_replay; drop view older_status; drop table if exists older_delivered, older_operations;
                       drop index older_dead_failed, older_failed_at, older_failed_queue, older_handled_at;
                       alter table older drop column fired_timer_id, drop column later_key, drop column parked_at, drop column after_dead;
                       create index older_key on older (queue, key, seq) where key is not null and failed_at is null; alter table older_queues drop column resumed_at, drop column resumed_by; delete from older_meta where version > 1`

    test.each([
      ['as it was', makeOlder],
      ['with a part of the steps', 'drop index older_dead_failed; delete from older_meta where version > 1'],
    ])('is told with what its missing steps make, and mended: %s', async (_, spoil) => {
      const outbox = await migrated('older')
      await query(spoil)

      expect((await differencesOf(outbox)).at(-1)).toMatchObject({
        object: `version in ${named('older_meta')}`,
        expected: expect.stringMatching(/migrate\(\)/),
        found: '1',
      })
      await proveMended(outbox)
    })

    test('is brought up by migrate as well', async () => {
      await query(makeOlder)
      const outbox = outboxOn('older')

      await outbox.migrate()

      expect(await differencesOf(outbox)).toEqual([])
    })

    test.each([
      ['the last step was', 'version > 1'],
      ['no step was', 'true'],
    ])('that is none, because only %s forgotten, is written down again', async (_, which) => {
      const outbox = outboxOn('older')
      await query(`delete from older_meta where ${which}`)

      expect(await differencesOf(outbox)).toMatchObject([
        { object: `version in ${named('older_meta')}`, sql: expect.stringMatching(/^insert into/) },
      ])
      await proveMended(outbox)
    })
  })

  test('a later version is not judged, and nobody is told to mend it away', async () => {
    const outbox = await migrated('newer')
    await query('drop index newer_ready')
    await query(`insert into newer_meta (version, name, breaking) values ($1, 'later', false)`, [
      currentVersion + 1,
    ])

    await expect(outbox.validateSchema()).rejects.toMatchObject({
      code: 'OUTBOX_SCHEMA_NEWER',
      message: expect.not.stringMatching(/create index/),
    })
  })

  test('dead letters that are discarded need no table', async () => {
    const outbox = await migrated('discarding', { deadLetters: 'discard' })
    // The view shows them, and is made again without.
    await query('drop table discarding_dead cascade')
    expect(objects(await differencesOf(outbox))).toEqual([`view ${named('discarding_status')}`])
    await mend(query, await differencesOf(outbox))

    expect(await differencesOf(outbox)).toEqual([])
    expect(objects(await differencesOf(outboxOn('discarding')))).toEqual([
      `table ${named('discarding_dead')}`,
      `view ${named('discarding_status')}`,
    ])
    await proveMended(outboxOn('discarding'))
  })

  test('autovacuum is not looked at when it is left to the server', async () => {
    const outbox = outboxOn('served')
    await query(await outbox.schemaSql({ autovacuum: false }))
    await query('alter table served set (autovacuum_enabled = off)')

    await outbox.validateSchema({ autovacuum: false })
    expect((await differencesOf(outbox)).every(({ object }) => /autovacuum/.test(object))).toBe(true)
    await query('alter table served set (fillfactor = 100)')
    await expect(outbox.validateSchema({ autovacuum: false })).rejects.toThrow(/fillfactor/)
    await query('drop table served cascade')
    await expect(outbox.validateSchema({ autovacuum: false })).rejects.toThrow(
      /create table .*\n(?:.*\n)*.*with \(fillfactor = 45, vacuum_truncate = off\)/,
    )
    await proveMended(outbox)
  })

  test('other options are refused', async () => {
    await expect(outboxOn('served').validateSchema({ autovacum: false } as never)).rejects.toMatchObject({
      code: 'OUTBOX_INVALID_OPTION',
      message: expect.stringMatching(/did you mean `autovacuum`/),
    })
  })

  test('names with quotes, spaces and capitals are looked up, named and mended', async () => {
    const schema = `Odd "${database.schema}`
    const quoted = `"${schema.replaceAll('"', '""')}"`
    const names = { dead: 'Dead "ones"', meta: `me'ta` }
    const outbox = await migrated('o"ut \\x', { schema, names })

    expect(await differencesOf(outbox)).toEqual([])
    await query(
      `drop index ${quoted}."o""ut \\x_ready"; alter table ${quoted}."o""ut \\x" alter seq drop identity`,
    )
    await query(`alter table ${quoted}."Dead ""ones""" drop constraint "Dead ""ones""_pkey"`)
    await query(`drop table ${quoted}."me'ta"`)
    await query(`drop view ${quoted}."o""ut \\x_status"; drop function ${quoted}."o""ut \\x_replay"`)
    expect(objects(await differencesOf(outbox))).toEqual([
      `column ${quoted}."o""ut \\x".seq`,
      `index ${quoted}."o""ut \\x_ready"`,
      `primary key "Dead ""ones""_pkey" on ${quoted}."Dead ""ones"""`,
      `table ${quoted}."me'ta"`,
      `function ${quoted}."o""ut \\x_replay"(uuid, bigint, text)`,
      `view ${quoted}."o""ut \\x_status"`,
      `version in ${quoted}."me'ta"`,
    ])
    await proveMended(outbox)
    await query(`drop schema ${quoted} cascade`)
  })

  test('a session that quotes every identifier sees the same schema', async () => {
    await migrated('quoting')
    const quoting = database.pool({ max: 1 })
    const client = await quoting.connect()
    await client.query('set quote_all_identifiers = on')
    client.release()

    expect(await differencesOf(outboxOn('quoting', { database: quoting }))).toEqual([])
    const { rows } = await quoting.query('show quote_all_identifiers')
    expect(rows).toEqual([{ quote_all_identifiers: 'on' }])
    await quoting.end()
  })

  test('a role that may only read and write validates, and changes nothing', async () => {
    await migrated('ruled')
    await query('drop index ruled_ready')
    const role = `role_${database.schema}`
    await query(`create role "${role}" login; grant usage on schema ${database.schema} to "${role}"`)
    await query(
      `grant select, insert, update, delete on all tables in schema ${database.schema} to "${role}"`,
    )
    const address = new URL(database.url)
    address.username = role
    const limited = database.pool({ connectionString: address.href.replaceAll('+', '%20'), max: 1 })
    const outbox = outboxOn('ruled', { database: limited })

    expect(objects(await differencesOf(outbox))).toEqual([`index ${named('ruled_ready')}`])
    expect(await query(`select to_regclass('ruled_ready') as made`)).toEqual([{ made: null }])
    await query('create index ruled_ready on ruled (queue, seq) where due_at is null')
    expect(await differencesOf(outbox)).toEqual([])

    await limited.end()
    await query(`drop owned by "${role}"; drop role "${role}"`)
  })

  test('an outbox without a database says so', async () => {
    await expect(createOutbox().validateSchema()).rejects.toMatchObject({ code: 'OUTBOX_NO_DATABASE' })
  })
})

// Without the guard of leaks: PGlite sets a timer of its own.
describe('in the process', () => {
  test('PGlite is validated and mended as a server is', async () => {
    await using db = await openPGlite()
    const outbox = createOutbox({ database: db, schema: 'public', logger: false })
    await outbox.migrate()

    expect(await differencesOf(outbox)).toEqual([])
    await db.exec(
      `drop index outbox_timer; drop view outbox_status; alter table outbox alter attempts type bigint;
       alter table outbox drop constraint outbox_lease; alter function outbox_replay reset all`,
    )
    const found = await differencesOf(outbox)
    expect(objects(found)).toEqual([
      'column "public"."outbox".attempts',
      'constraint "outbox_lease" on "public"."outbox"',
      'index "public"."outbox_timer"',
      'function "public"."outbox_replay"(uuid, bigint, text)',
      'view "public"."outbox_status"',
    ])
    await db.exec(found.map(({ sql }) => sql).join('\n'))
    expect(await differencesOf(outbox)).toEqual([])
  })
})
