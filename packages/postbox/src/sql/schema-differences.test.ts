import { describe, expect, test } from 'vitest'
import type {
  Catalogue,
  Column,
  ExpectedTable,
  FoundColumn,
  FoundIndex,
  FoundTable,
} from '../core/schema-shape.ts'
import type { FoundRoutine, FoundView } from '../core/schema-surface.ts'
import { expectedSchema } from './expected-schema.ts'
import { mendDrift } from './mend-schema.ts'
import { currentVersion } from './migrations/index.ts'
import { resolveNames } from './names.ts'
import { replayFunction } from './replay-function.ts'
import { schemaDifferences } from './schema-differences.ts'
import { allTables, statusView } from './status-view.ts'

const names = resolveNames({ schema: 's', table: 't' })
const all = { autovacuum: true, deadLetters: 'table', delivered: 'table' } as const
const tables = expectedSchema(names, all).map(asMade)
const [messages, ...others] = tables as [FoundTable, ...FoundTable[]]

/** A table as the catalogue shows it when it was just made. */
function asMade(table: ExpectedTable): FoundTable {
  const { relation, primaryKey } = table
  const primary = { ...primaryKey, name: primaryKey.index, unique: true, predicate: null }
  const plain = { isPrimary: false, constraint: null, reads: [], oddities: '' }
  return {
    relation,
    kind: 'r',
    isLogged: true,
    columns: table.columns.map(foundColumn),
    indexes: [
      { ...primary, ...plain, isPrimary: true, constraint: primaryKey.name },
      ...table.indexes.map((index) => ({ ...index, ...plain, reads: index.keys })),
    ],
    checks: table.checks.map((check) => ({ ...check, valid: true })),
    storage: Object.fromEntries(table.storage.map(({ name, value }) => [name, String(value)])),
  }
}

function foundColumn(column: Column): FoundColumn {
  return { ...column, quoted: `"${column.name}"`, generated: false, refusesNull: column.notNull }
}

const view: FoundView = { ...statusView(names, allTables), kind: 'v', isInvoker: false, grants: [] }
const routine: FoundRoutine = { ...replayFunction(names), isPublic: false, grants: [] }
const made: Catalogue = { tables, view, routines: [routine], version: currentVersion }

const differencesWith = (given: Partial<FoundTable>, version: number | null = currentVersion) =>
  schemaDifferences(names, all, { ...made, tables: [{ ...messages, ...given }, ...others], version })
const sqlWith = (given: Partial<FoundTable>) => differencesWith(given).map(({ sql }) => sql)
const columnsWith = (name: string, given: Partial<FoundColumn>) =>
  messages.columns.map((one) => (one.name === name ? { ...one, ...given } : one))
/** Without a view in the way, which is missing then, and told last. */
const sqlWithColumn = (name: string, given: Partial<FoundColumn>) =>
  schemaDifferences(names, all, {
    ...made,
    tables: [{ ...messages, columns: columnsWith(name, given) }, ...others],
    view: null,
  })
    .slice(0, -1)
    .flatMap(({ sql }) => sql.split('\n'))
const indexesWith = (name: string, given: Partial<FoundIndex>) =>
  messages.indexes.map((one) => (one.name === `"s"."${name}"` ? { ...one, ...given } : one))

describe('the tables of an outbox', () => {
  test('as they were made do not differ', () => {
    expect(differencesWith({})).toEqual([])
  })

  test('that are discarded or left to the server are not looked at', () => {
    const parts = { autovacuum: false, deadLetters: 'discard', delivered: 'delete' } as const
    const storage = { fillfactor: '45', vacuum_truncate: 'off' }
    const found = [{ ...messages, storage }, ...others.filter(({ relation }) => relation !== 't_dead')]

    const reduced = { ...view, ...statusView(names, { dead: false, delivered: true }) }
    expect(schemaDifferences(names, parts, { ...made, tables: found, view: reduced })).toEqual([])
  })

  test('that are missing are made by the statements of the migrations', () => {
    const found = schemaDifferences(names, all, { tables: [], view: null, routines: [], version: null })

    expect(found.map(({ object, found }) => [object, found])).toEqual([
      ['table "s"."t"', 'missing'],
      ['table "s"."t_dead"', 'missing'],
      ['table "s"."t_delivered"', 'missing'],
      ['table "s"."t_handled"', 'missing'],
      ['table "s"."t_queues"', 'missing'],
      ['table "s"."t_operations"', 'missing'],
      ['table "s"."t_meta"', 'missing'],
      ['function "s"."t_replay"(uuid, bigint, text)', 'missing'],
      ['view "s"."t_status"', 'missing'],
      ['version in "s"."t_meta"', 'missing'],
    ])
    expect(found[1]?.sql.match(/^create (table|index)/gm)).toHaveLength(4)
  })

  test('that something else stands for are made after that is dropped', () => {
    const [view] = differencesWith({ kind: 'v' })
    expect(view).toMatchObject({ found: 'another relation: view' })
    expect(view?.sql).toMatch(
      /^drop view if exists "s"."t_status";\ndrop view "s"."t";\ncreate table "s"."t"/,
    )
    expect(differencesWith({ kind: 'I' })[0]?.found).toBe('another relation: relation')
  })

  test('that a crash empties are logged again', () => {
    expect(sqlWith({ isLogged: false })).toEqual(['alter table "s"."t" set logged;'])
  })
})

describe('a version', () => {
  const older = { columns: messages.columns.filter(({ name }) => name !== 'fired_timer_id') }

  test('that is behind is told after what its missing steps would have made, whatever of it is there', () => {
    const found = differencesWith({ ...older, isLogged: false }, 1)

    expect(found).toMatchObject([
      { object: 'table "s"."t"' },
      { object: 'column "s"."t".fired_timer_id' },
      {
        object: 'version in "s"."t_meta"',
        expected: `${currentVersion}, made by \`await outbox.migrate()\``,
      },
    ])
  })

  test('that is behind on tables that are not is written down', () => {
    expect(differencesWith({}, 1)).toMatchObject([
      {
        found: '1',
        sql: expect.stringMatching(/^insert[^;]*\(2,[^;]*;\ninsert[^;]*\(3,[^;]*;(\ninsert[^;]*;)+$/),
      },
    ])
  })

  test.each([0, null])('that nobody knows (%s) is written down after all else is mended', (version) => {
    const found = differencesWith(older, version)

    expect(found.map(({ object }) => object)).toEqual([
      'column "s"."t".fired_timer_id',
      'version in "s"."t_meta"',
    ])
    expect(found[1]?.sql.match(/^insert/gm)).toHaveLength(currentVersion)
  })

  test('whose table has lost a column gets its rows anew', () => {
    const meta = others.at(-1) as FoundTable
    const columns = meta.columns.filter(({ name }) => name !== 'breaking')
    const found = schemaDifferences(names, all, {
      ...made,
      tables: [...tables.slice(0, -1), { ...meta, columns }],
      version: null,
    })

    expect(found.map(({ sql }) => sql.split('\n')[0])).toEqual([
      'delete from "s"."t_meta";',
      expect.stringMatching(/^insert into/),
    ])
  })
})

describe('a column', () => {
  const alter = 'alter table "s"."t" alter column'

  test('that is missing is added as it was made', () => {
    const without = (name: string) =>
      sqlWith({ columns: messages.columns.filter((one) => one.name !== name) }).join()

    expect(without('queue')).toBe('alter table "s"."t" add column queue text collate "C" not null;')
    expect(without('attempts')).toBe('alter table "s"."t" add column attempts integer not null default 0;')
    expect(without('seq')).toBe(
      'drop sequence if exists "s"."t_seq_seq";\nalter table "s"."t" add column seq bigint not null generated always as identity (sequence name "s"."t_seq_seq");',
    )
  })

  const changes: Record<string, [string, Partial<FoundColumn>, string[]]> = {
    type: ['key', { type: 'uuid' }, ['type text collate "C" using key::text']],
    collation: ['key', { collation: null }, ['type text collate "C" using key::text']],
    'type and default': [
      'attempts',
      { type: 'text', default: `'0'::text` },
      ['drop default', 'type integer using attempts::integer', 'set default 0'],
    ],
    'wrong default': ['attempts', { default: '1' }, ['set default 0']],
    'default that must not be': ['key', { default: `'k'::text` }, ['drop default']],
    'null that is refused': ['key', { notNull: true }, ['drop not null']],
    'null that is allowed': ['body', { notNull: false }, ['set not null']],
    computation: ['key', { generated: true }, ['drop expression']],
  }
  test.each(Object.entries(changes))('is mended in its %s, and in nothing else', (_, [name, given, sql]) => {
    expect(sqlWithColumn(name, given)).toEqual(sql.map((statement) => `${alter} ${name} ${statement};`))
  })

  test('that may no longer be null is filled where there is a default', () => {
    expect(sqlWithColumn('attempts', { notNull: false })).toEqual([
      'update "s"."t" set attempts = default where attempts is null;',
      `${alter} attempts set not null;`,
    ])
  })

  test('of somebody else’s may be null again', () => {
    const extra = {
      ...foundColumn({ ...(messages.columns[1] as Column), name: 'My "own' }),
      quoted: '"My ""own"',
    }
    expect(differencesWith({ columns: [...messages.columns, extra] })).toEqual([
      {
        object: 'column "s"."t"."My ""own"',
        expected: 'null allowed, or a default',
        found: 'uuid not null, which no insert of the outbox fills',
        sql: 'alter table "s"."t" alter column "My ""own" drop not null;',
      },
    ])
  })
})

describe('numbering', () => {
  const seq = messages.columns[0]?.identity
  if (seq === undefined || seq === null) throw new Error('seq numbers itself')
  const alter = 'alter table "s"."t" alter column seq'
  const goOn = expect.stringMatching(/^select setval\(.*, max\(seq\)\) from "s"."t" having max\(seq\) > /)

  test('that is gone is made again, above the rows that are there', () => {
    expect(sqlWithColumn('seq', { identity: null })).toEqual([
      'drop sequence if exists "s"."t_seq_seq";',
      `${alter} add generated always as identity (sequence name "s"."t_seq_seq");`,
      goOn,
    ])
  })

  test('by a sequence of other parameters gets ours, and goes on above the rows', () => {
    expect(sqlWithColumn('seq', { identity: { ...seq, parameters: ['cache 9'] } })).toEqual([
      `${alter} set increment 1 set minvalue 1 set maxvalue 9223372036854775807 set start 1 set cache 1 set no cycle;`,
      goOn,
    ])
  })

  test.each([
    ['can be evaded', { always: false }, [`${alter} set generated always;`]],
    ['a crash resets', { isLogged: false }, ['alter sequence "s"."t_seq_seq" set logged;']],
    [
      'has another name',
      { sequence: '"s"."x"' },
      ['drop sequence if exists "s"."t_seq_seq";', 'alter sequence "s"."x" rename to "t_seq_seq";'],
    ],
  ])('that %s is mended', (_, given, statements) => {
    expect(sqlWithColumn('seq', { identity: { ...seq, ...given } })).toEqual(statements)
  })

  test('of a column that must not number itself is dropped', () => {
    expect(sqlWithColumn('generation', { identity: seq })).toEqual([
      'alter table "s"."t" alter column generation drop identity;',
    ])
  })
})

describe('an index', () => {
  test('that is missing is made by the statement of the migrations', () => {
    const indexes = messages.indexes.filter(({ name }) => name !== '"s"."t_ready"')
    expect(differencesWith({ indexes })).toEqual([
      {
        object: 'index "s"."t_ready"',
        expected: '(queue, seq) where (due_at IS NULL)',
        found: 'missing',
        sql: 'create index "t_ready" on "s"."t" (queue, seq) where due_at is null;',
      },
    ])
  })

  test('that is wrong is dropped first', () => {
    const [timer] = differencesWith({
      indexes: indexesWith('t_timer', { unique: false, oddities: 'invalid' }),
    })
    expect(timer?.found).toMatch(/^\(queue, timer_id\) where .* invalid$/)
    expect(timer?.sql).toMatch(/^drop index "s"."t_timer";\ncreate unique index "t_timer"/)
  })

  test('of somebody else’s that refuses what we write is dropped with its constraint', () => {
    const extra = {
      ...(messages.indexes[1] as FoundIndex),
      name: '"s"."x"',
      unique: true,
      keys: ['attempts'],
    }
    const found = (constraint: string | null) =>
      differencesWith({ indexes: [...messages.indexes, { ...extra, constraint, reads: ['attempts'] }] })

    expect(found(null)).toMatchObject([{ object: 'index "s"."x"', sql: 'drop index "s"."x";' }])
    expect(found('"x"')).toMatchObject([{ sql: 'alter table "s"."t" drop constraint "x";' }])
  })
})

describe('a constraint', () => {
  test('that is the wrong primary key is replaced', () => {
    const [key] = differencesWith({ indexes: indexesWith('t_pkey', { keys: ['id'], constraint: '"pk"' }) })
    expect(key).toEqual({
      object: 'primary key "t_pkey" on "s"."t"',
      expected: '(seq)',
      found: '(id)',
      sql: 'alter table "s"."t" drop constraint "pk";\nalter table "s"."t" add constraint "t_pkey" primary key (seq);',
    })
  })

  test('that is no primary key is said to be none', () => {
    const [key] = differencesWith({ indexes: indexesWith('t_pkey', { isPrimary: false, constraint: null }) })
    expect(key).toMatchObject({
      found: 'unique (seq), not a primary key',
      sql: expect.stringMatching(/^drop index "s"."t_pkey";\nalter table/),
    })
  })

  test('of the lease is put back over rows that keep it', () => {
    const add =
      'alter table "s"."t" add constraint "t_lease" check ((lease_token is null) = (leased_until is null));'
    const [missing] = differencesWith({ checks: [] })
    expect(missing?.sql).toMatch(/^update "s"."t" set lease_token = null, leased_until = null where not \(/)
    expect(missing?.sql.endsWith(add)).toBe(true)

    const [late] = differencesWith({
      checks: messages.checks.map((check) => ({ ...check, name: '"ck"', valid: false })),
    })
    expect(late?.found).toMatch(/ not valid$/)
    expect(late?.sql).toContain('drop constraint "ck";\n')
  })
})

test.each([
  { name: 'fillfactor', value: '90', expected: '45', change: 'set (fillfactor = 45)' },
  { name: 'vacuum_truncate', value: 'on', expected: 'off', change: 'set (vacuum_truncate = off)' },
  {
    name: 'autovacuum_vacuum_scale_factor',
    value: '0.2',
    expected: '0',
    change: 'set (autovacuum_vacuum_scale_factor = 0)',
  },
  {
    name: 'toast.autovacuum_vacuum_threshold',
    value: undefined,
    expected: 'any value',
    change: 'set (toast.autovacuum_vacuum_threshold = 1000)',
  },
  { name: 'autovacuum_enabled', value: 'off', expected: 'not off', change: 'reset (autovacuum_enabled)' },
])('the storage parameter $name with the value $value is set right', ({ name, value, expected, change }) => {
  const storage = { ...messages.storage, [name]: value } as FoundTable['storage']
  expect(differencesWith({ storage })).toEqual([
    {
      object: `storage parameter ${name} of "s"."t"`,
      expected,
      found: value ?? 'missing',
      sql: `alter table "s"."t" ${change};`,
    },
  ])
})

test('no other drift is mended', () => {
  expect(() => mendDrift({ table: { name: '"s"."t"' }, kind: 'mood' } as never)).toThrow('unreachable')
})
