import pg from 'pg'
import { createOutbox, OutboxError } from 'postbox'
import { beforeAll, describe, expect, test } from 'vitest'
import { currentVersion, migrations } from '../../packages/postbox/src/sql/migrations/index.ts'
import { useDatabase } from '../support/database.ts'
import { eventually } from '../support/signals.ts'

const database = useDatabase()
// A version that this build does not know.
const next = currentVersion + 1
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool({ max: 12 })
})

/** Everything that the catalogue says about the objects of one outbox. */
async function catalogue(schema: string, table: string): Promise<unknown> {
  const objects = await database.query(
    `select c.relname, c.relkind, c.reloptions, t.reloptions as toast
       from pg_class c left join pg_class t on t.oid = c.reltoastrelid
      where c.relnamespace = (select oid from pg_namespace where nspname = $1) and c.relname like $2
      order by c.relname`,
    [schema, `${table.replaceAll('_', '\\_')}%`],
  )
  const columns = await database.query(
    `select c.relname, a.attname, format_type(a.atttypid, a.atttypmod) as type, a.attnotnull, a.attidentity,
            pg_get_expr(d.adbin, d.adrelid) as value, l.collname
       from pg_attribute a join pg_class c on c.oid = a.attrelid
       left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
       left join pg_collation l on l.oid = a.attcollation
      where c.relnamespace = (select oid from pg_namespace where nspname = $1) and c.relkind = 'r' and a.attnum > 0
        and c.relname like $2
      order by c.relname, a.attnum`,
    [schema, `${table.replaceAll('_', '\\_')}%`],
  )
  const indexes = await database.query<{ indexdef: string }>(
    `select indexdef from pg_indexes where schemaname = $1 and tablename like $2 order by indexname`,
    [schema, `${table.replaceAll('_', '\\_')}%`],
  )
  const withoutSchema = indexes.map((row) => row.indexdef.replaceAll(schema, 'S').replaceAll(`"S"`, 'S'))
  return JSON.parse(JSON.stringify({ objects, columns, indexes: withoutSchema }).replaceAll(schema, 'S'))
}

describe('migrate', () => {
  test('ten processes at once make one schema, and none of them fails', async () => {
    const outboxes = Array.from({ length: 10 }, () =>
      createOutbox({ database: pool, schema: database.schema, table: 'ten' }),
    )

    await Promise.all(outboxes.map((outbox) => outbox.migrate()))

    const steps = await database.query('select version, name, breaking from ten_meta order by version')
    expect(steps).toEqual(migrations.map(({ version, name, breaking }) => ({ version, name, breaking })))
  })

  test('a second run changes nothing', async () => {
    const outbox = createOutbox({ database: pool, schema: database.schema, table: 'twice' })
    await outbox.migrate()
    const before = await database.query('select xmin::text, * from twice_meta')

    await outbox.migrate()

    expect(await database.query('select xmin::text, * from twice_meta')).toEqual(before)
  })

  test('a schema that a later version made is refused and left as it is', async () => {
    const outbox = createOutbox({ database: pool, schema: database.schema, table: 'newer' })
    await outbox.migrate()
    await database.query(
      `insert into newer_meta (version, name, breaking) values ($1, 'from the future', false)`,
      [next],
    )
    const before = await database.query('select xmin::text, * from newer_meta order by version')

    await expect(outbox.migrate()).rejects.toMatchObject({
      code: 'OUTBOX_SCHEMA_NEWER',
      message: expect.stringContaining(`version ${next}`),
    })
    expect(await database.query('select xmin::text, * from newer_meta order by version')).toEqual(before)
    expect(before.at(-1)).toMatchObject({ version: next })
  })

  test('a table of somebody else’s with our name is refused and left as it is', async () => {
    await database.query('create table taken (id int)')
    const outbox = createOutbox({ database: pool, schema: database.schema, table: 'taken' })

    await expect(outbox.migrate()).rejects.toMatchObject({
      code: 'OUTBOX_TABLE_TAKEN',
      message: expect.stringMatching(/"taken"/),
    })
    expect(await database.query(`select to_regclass('taken_meta') as meta`)).toEqual([{ meta: null }])
  })

  test('a failed migration leaves nothing behind', async () => {
    // The name of the second table is taken, so a statement in the middle fails.
    await database.query('create table broken_dead (id int)')
    const outbox = createOutbox({ database: pool, schema: database.schema, table: 'broken' })

    await expect(outbox.migrate()).rejects.toMatchObject({ code: '42P07' })
    expect(
      await database.query(`select to_regclass('broken') as made, to_regclass('broken_meta') as meta`),
    ).toEqual([{ made: null, meta: null }])
  })

  test('a schema that is missing is made; one that exists needs no right to make schemas', async () => {
    const made = `${database.schema}_Made "here"`
    await createOutbox({ database: pool, schema: made, table: 'outbox' }).migrate()
    expect(
      await database.query('select to_regnamespace($1) is not null as there', [
        `"${made.replaceAll('"', '""')}"`,
      ]),
    ).toEqual([{ there: true }])
    await database.query(`drop schema "${made.replaceAll('"', '""')}" cascade`)

    const role = `role_${database.schema}`
    await database.query(`create role "${role}" login`)
    await database.query(`grant create, usage on schema ${database.schema} to "${role}"`)
    const limited = database.pool({ user: role, connectionString: undefined, ...connectionOf(database.url) })
    await createOutbox({ database: limited, schema: database.schema, table: 'by_role' }).migrate()
    await limited.end()
    expect(await database.query(`select count(*)::int as steps from by_role_meta`)).toEqual([
      { steps: migrations.length },
    ])
    await database.query(`drop owned by "${role}" cascade`)
    await database.query(`drop role "${role}"`)

    function connectionOf(url: string): pg.PoolConfig {
      const { hostname, port, pathname } = new URL(url)
      return {
        host: hostname,
        port: Number(port),
        database: pathname.slice(1),
        application_name: database.applicationName,
      }
    }
  })
})

test('a database that is not UTF-8 is refused before anything is made in it', async () => {
  const name = `latin_${database.schema}`
  await database.query(
    `create database ${name} encoding 'LATIN1' locale_provider libc locale 'C' template template0`,
  )
  const url = new URL(database.url)
  url.pathname = `/${name}`
  const latin = new pg.Pool({
    connectionString: url.href.replaceAll('+', '%20'),
    max: 1,
    idleTimeoutMillis: 0,
  })

  // Dropping the database cuts the connection that the failed migration is closing.
  latin.on('error', () => {})

  await expect(createOutbox({ database: latin }).migrate()).rejects.toMatchObject({
    code: 'OUTBOX_UNSUPPORTED_DATABASE',
    message: expect.stringContaining('LATIN1'),
  })
  await latin.end()
  await database.query(`drop database ${name} (force)`)
})

describe('schemaSql', () => {
  test('makes the same objects as migrate, and migrate then finds nothing to do', async () => {
    const bySql = createOutbox({ database: pool, schema: database.schema, table: 'by_sql' })
    await database.query(await bySql.schemaSql())
    await bySql.migrate()
    await createOutbox({ database: pool, schema: database.schema, table: 'by_run' }).migrate()

    const sql = JSON.stringify(await catalogue(database.schema, 'by_sql')).replaceAll('by_sql', 'x')
    const run = JSON.stringify(await catalogue(database.schema, 'by_run')).replaceAll('by_run', 'x')
    expect(sql).toBe(run)
  })

  test('autovacuum can be tuned, or left to the server', async () => {
    const outbox = createOutbox({ schema: 'app' })

    expect(await outbox.schemaSql()).toContain('autovacuum_vacuum_threshold = 1000')
    expect(await outbox.schemaSql({ autovacuum: { threshold: 5, costLimit: 900 } })).toMatch(
      /vacuum_threshold = 5,.*toast.autovacuum_vacuum_cost_limit = 900/s,
    )
    expect(await outbox.schemaSql({ autovacuum: false })).not.toContain('autovacuum')
  })

  test('wrong thresholds are refused before they become SQL', async () => {
    const outbox = createOutbox({ schema: 'app' })

    for (const autovacuum of [{ threshold: '1; drop table x' }, { treshold: 5 }, 'off', { costDelay: -1 }]) {
      await expect(outbox.schemaSql({ autovacuum } as never)).rejects.toThrow(OutboxError)
    }
  })
})

describe('the tables', () => {
  test('messages, dead letters, inbox, queues and versions are as designed', async () => {
    await createOutbox({ database: pool, schema: database.schema, table: 'designed' }).migrate()

    expect(await catalogue(database.schema, 'designed')).toMatchSnapshot()
  })

  test.each([
    ['upper case', 'Outbox'],
    ['quotes and spaces', `my "out" box's`],
    ['a reserved word', 'select'],
    ['other scripts', 'очередь'],
    ['a backslash', 'a\\b'],
  ])('a table name with %s works from schema to delivery', async (_, table) => {
    const outbox = createOutbox({ database: pool, schema: database.schema, table, logger: false })
    await outbox.migrate()
    const client = await pool.connect()
    await client.query('begin')
    await outbox.publish(client, 'orders', 1)
    await outbox.publishMany(client, 'orders', [2, 3])
    await client.query('commit')
    client.release()

    const got: unknown[] = []
    await new Promise<void>((resolve, reject) => {
      outbox.subscribe('orders', (message) => {
        got.push(message.body)
        if (got.length === 3) resolve()
      })
      outbox.start().catch(reject)
    })
    await outbox.stop()

    expect(got).toEqual([1, 2, 3])
    const name = `"${database.schema}"."${table.replaceAll('"', '""')}"`
    expect(await database.query(`select count(*)::int as left_over from ${name}`)).toEqual([{ left_over: 0 }])
  })

  test('the longest names that the limit allows work, one byte more does not', async () => {
    const longest = 'l'.repeat(63 - `postbox:${database.schema}.`.length)
    const outbox = createOutbox({ database: pool, schema: database.schema, table: longest })

    await outbox.migrate()

    expect(
      await database.query(`select to_regclass($1) is not null as made`, [
        `${database.schema}."${longest}_dead_pkey"`,
      ]),
    ).toEqual([{ made: true }])
    expect(() => createOutbox({ schema: database.schema, table: `${longest}l` })).toThrow(/63 bytes/)
    expect(() => createOutbox({ schema: 's', table: 't'.repeat(44) })).not.toThrow()
    expect(() => createOutbox({ schema: 's', table: 't'.repeat(45) })).toThrow(/63 bytes/)
  })

  test('a lease is both columns or neither: half a lease is refused by the database', async () => {
    await createOutbox({ database: pool, schema: database.schema, table: 'half' }).migrate()
    const insert = (columns: string, values: string): Promise<unknown> =>
      database.query(
        `insert into half (id, queue, body, ${columns}) values (gen_random_uuid(), 'q', '', ${values})`,
      )

    await expect(insert('lease_token', 'gen_random_uuid()')).rejects.toMatchObject({ code: '23514' })
    await expect(insert('leased_until', 'now()')).rejects.toMatchObject({ code: '23514' })
  })
})

describe('start', () => {
  const outboxOn = (table: string) =>
    createOutbox({ database: pool, schema: database.schema, table, logger: false })

  test('without a schema says how to make one', async () => {
    await expect(outboxOn('absent').start()).rejects.toMatchObject({
      code: 'OUTBOX_SCHEMA_MISSING',
      hint: expect.stringMatching(/migrate/),
    })
  })

  test('on a schema of an earlier version is refused', async () => {
    const outbox = outboxOn('older')
    await outbox.migrate()
    await database.query('delete from older_meta where version = (select max(version) from older_meta)')

    await expect(outbox.start()).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_OUTDATED' })
  })

  test('works on a later version’s schema, unless a step of it is breaking', async () => {
    const outbox = outboxOn('rolling')
    await outbox.migrate()
    const note = (version: number, breaking: boolean): Promise<unknown> =>
      database.query(`insert into rolling_meta (version, name, breaking) values ($1, 'later', $2)`, [
        version,
        breaking,
      ])
    await note(next, false)
    const running = await outbox.start()
    await running.stop()

    await note(next + 1, true)
    await expect(outbox.start()).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_NEWER' })
  })
})

test('a connection that breaks in the middle of a migration is an error, not the end of the process', async () => {
  const breaking = database.pool({ max: 1 })
  const outbox = createOutbox({ database: breaking, schema: database.schema, table: 'cut' })
  // Somebody else migrates: ours waits for the lock, inside its transaction.
  const other = await pool.connect()
  await other.query('begin')
  await other.query(
    `select pg_advisory_xact_lock(hashtextextended('postbox:${database.schema}.cut migrate', 0))`,
  )
  // Heard from the start: it may fail before the answer to who broke it is here.
  const failed = expect(outbox.migrate()).rejects.toMatchObject({ code: '57P01' })
  const pid = await eventually(
    async () =>
      (
        await database.query<{ pid: number }>(
          `select a.pid from pg_stat_activity a
            where a.wait_event = 'advisory' and a.query like '%cut migrate%' and starts_with(a.application_name, $1)`,
          [database.applicationName],
        )
      )[0]?.pid,
    { what: 'the migration to wait for its lock' },
  )

  await database.query('select pg_terminate_backend($1)', [pid])

  await failed
  await other.query('rollback')
  other.release()
  await outbox.migrate()
  await breaking.end()
})
