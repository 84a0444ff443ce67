import { describe, expect, test } from 'vitest'
import { describeSurface } from '../core/describe-surface.ts'
import type { Catalogue, FoundTable } from '../core/schema-shape.ts'
import type { FoundRoutine, FoundView } from '../core/schema-surface.ts'
import { expectedSchema } from './expected-schema.ts'
import { mendSurface } from './mend-surface.ts'
import { currentVersion } from './migrations/index.ts'
import { resolveNames } from './names.ts'
import { replayFunction } from './replay-function.ts'
import { schemaDifferences } from './schema-differences.ts'
import { allTables, createStatusView, statusView } from './status-view.ts'

const names = resolveNames({ schema: 's', table: 't' })
const parts = { autovacuum: false, deadLetters: 'table', delivered: 'table' } as const
const grants = [{ grantee: '"ann"', privilege: 'select' }]
const view: FoundView = { ...statusView(names, allTables), kind: 'v', isInvoker: false, grants }
const routine: FoundRoutine = {
  ...replayFunction(names),
  isPublic: false,
  grants: [{ grantee: '"ben"', privilege: 'execute' }],
}
const create = `${createStatusView(names, allTables)};`

/** Tables that lack nothing. */
const tables = expectedSchema(names, parts).map(
  ({ relation, columns, primaryKey, indexes, checks, storage }): FoundTable => ({
    ...{ relation, kind: 'r', isLogged: true },
    columns: columns.map((one) => ({ ...one, quoted: one.name, generated: false, refusesNull: one.notNull })),
    indexes: [{ ...primaryKey, name: primaryKey.index, unique: true, predicate: null }, ...indexes].map(
      (index, place) => ({ ...index, isPrimary: place === 0, constraint: null, reads: [], oddities: '' }),
    ),
    checks: checks.map((check) => ({ ...check, valid: true })),
    storage: Object.fromEntries(storage.map(({ name, value }) => [name, String(value)])),
  }),
)
const made: Catalogue = { tables, view, routines: [routine], version: currentVersion }

const differencesWith = (given: Partial<Catalogue>) => schemaDifferences(names, parts, { ...made, ...given })
const withView = (given: Partial<FoundView>) => differencesWith({ view: { ...view, ...given } })
const withRoutine = (given: Partial<FoundRoutine>) =>
  differencesWith({ routines: [{ ...routine, ...given }] })
const first = (sql: string | undefined, count: number) => sql?.split('\n').slice(0, count).join('\n')

test('a view and a function as they were made do not differ', () => {
  expect(differencesWith({})).toEqual([])
})

describe('the function', () => {
  const object = 'function "s"."t_replay"(uuid, bigint, text)'
  const revoke = 'revoke all on function "s"."t_replay"(uuid, bigint, text) from public;'

  test('that is missing is made, and taken from public', () => {
    const [found, ...others] = differencesWith({ routines: [] })

    expect(others).toEqual([])
    expect(found).toMatchObject({ object, found: 'missing' })
    expect(found?.expected).toBe(
      '(event_id uuid, p_new_generation bigint, p_replayed_by text) returns text plpgsql, volatile, parallel unsafe, called on null, security definer, plan_cache_mode=force_custom_plan, search_path=pg_catalog, pg_temp, not for public',
    )
    expect(found?.sql).toMatch(/^create function "s"."t_replay"\(event_id uuid, /)
    expect(found?.sql.endsWith(revoke)).toBe(true)
  })

  test.each<[string, Partial<FoundRoutine>, RegExp]>([
    ['volatility', { traits: ['plpgsql', 'stable'] }, /plpgsql, stable/],
    ['settings', { settings: ['search_path=public'] }, /search_path=public/],
    ['settings that it has not', { settings: [] }, /definer$/],
    ['body', { body: 'begin end' }, /with another body$/],
    ['public', { isPublic: true }, /, for public$/],
  ])('of another %s is replaced where it is, and keeps its grants', (_, given, text) => {
    const [found, ...others] = withRoutine(given)

    expect(others).toEqual([])
    expect(found).toMatchObject({ object, found: expect.stringMatching(text) })
    expect(found?.sql).toMatch(/^create or replace function/)
    expect(found?.sql.endsWith(revoke)).toBe(true)
  })

  test.each<[string, Partial<FoundRoutine>, string]>([
    ['arguments', { arguments: 'id uuid, generation bigint, who text' }, '(uuid, bigint, text)'],
    [
      'types',
      { argumentTypes: '(uuid, int, text)', arguments: 'event_id uuid, int, text' },
      '(uuid, int, text)',
    ],
    ['result', { result: 'boolean' }, '(uuid, bigint, text)'],
    ['kind', { result: null }, '(uuid, bigint, text)'],
  ])('of other %s is dropped and made, and its grants with it', (_, given, dropped) => {
    const [found] = withRoutine(given)

    expect(first(found?.sql, 1)).toBe(`drop routine "s"."t_replay"${dropped};`)
    expect(found?.sql.split('\n').slice(-2)).toEqual([
      revoke,
      'grant execute on function "s"."t_replay"(uuid, bigint, text) to "ben";',
    ])
  })

  test('may have settings of somebody’s own, in any order, and others of its name beside it', () => {
    const settings = ['lock_timeout=1s', ...routine.settings.toReversed()]
    const other = { ...routine, argumentTypes: '(uuid)', body: '' }

    expect(differencesWith({ routines: [other, { ...routine, settings }] })).toEqual([])
  })
})

describe('the view', () => {
  const object = 'view "s"."t_status"'

  test('that is missing is made', () => {
    expect(differencesWith({ view: null })).toMatchObject([
      { object, expected: expect.stringMatching(/^a view of \(id uuid, /), found: 'missing', sql: create },
    ])
  })

  test('with another definition is replaced where it is', () => {
    const definition = view.definition?.replace('is not true', 'is true') ?? ''

    expect(withView({ definition })).toMatchObject([
      { object, found: 'with another definition', sql: create.replace('create', 'create or replace') },
    ])
  })

  test('with other columns is dropped and made, and its grants with it', () => {
    const columns = view.columns.slice(1)

    expect(withView({ columns })).toMatchObject([
      {
        found: expect.stringMatching(/^a view of \(queue text, /),
        sql: `drop view if exists "s"."t_status";\n${create}\ngrant select on "s"."t_status" to "ann";`,
      },
    ])
  })

  test('with the rights of its reader has its owner’s again', () => {
    expect(withView({ isInvoker: true })).toMatchObject([
      { found: 'with the rights of its reader', sql: 'alter view "s"."t_status" reset (security_invoker);' },
    ])
  })

  test.each([
    ['m', 'materialized view', 'drop materialized view "s"."t_status";'],
    ['r', 'table', 'alter table "s"."t_status" rename to "t_status_aside";'],
    ['f', 'foreign table', 'alter foreign table "s"."t_status" rename to "t_status_aside";'],
  ])('that something else stands for (%s) is made after that is out of the way', (kind, word, sql) => {
    const [found] = withView({ kind, definition: null })

    expect(found).toMatchObject({ object, found: `another relation: ${word}`, sql: `${sql}\n${create}` })
  })

  test.each<[string, string, string]>([
    ['t', 'attempts', 'bigint'],
    ['t_dead', 'last_error', 'character varying(9)'],
    ['t_delivered', 'created_at', 'date'],
  ])('is dropped before a column of %s is altered, and made again at the end', (relation, name, type) => {
    const columns = (table: FoundTable) =>
      table.columns.map((one) => (one.name === name ? { ...one, type } : one))
    const spoilt = tables.map((one) => (one.relation === relation ? { ...one, columns: columns(one) } : one))

    const found = differencesWith({ tables: spoilt, version: 1 })

    expect(found.map((one) => one.object)).toEqual([
      `column "s"."${relation}".${name}`,
      object,
      'version in "s"."t_meta"',
    ])
    expect(found[0]?.sql).toMatch(/^drop view if exists "s"."t_status";\nalter table/)
    expect(found[1]).toMatchObject({
      found: 'in their way',
      sql: `drop view if exists "s"."t_status";\n${create}\ngrant select on "s"."t_status" to "ann";`,
    })
  })

  test('is left alone when what it reads is mended without altering it', () => {
    const spoilt = tables.map((one) => ({
      ...one,
      columns: one.columns.map((column) =>
        column.name === 'queue' ? { ...column, notNull: false } : column,
      ),
    }))

    const found = differencesWith({ tables: spoilt })

    expect(found).toHaveLength(3)
    expect(found.every(({ sql }) => !sql.includes('view'))).toBe(true)
  })

  test.each([
    ['the dead letters', { deadLetters: 'discard', delivered: 'table' }, 't_dead'],
    ['the delivered messages', { deadLetters: 'table', delivered: 'delete' }, 't_delivered'],
  ] as const)('shows %s where they are kept or were, and else does without', (_, modes, relation) => {
    const without = tables.filter((one) => one.relation !== relation)
    const differences = (found: Partial<Catalogue>) =>
      schemaDifferences(names, { ...parts, ...modes }, { ...made, ...found })

    expect(differences({})).toEqual([])
    expect(differences({ tables: without, view: null })).toMatchObject([
      { object, sql: expect.not.stringContaining(`"${relation}"`) },
    ])
    expect(differencesWith({ tables: without, view: null }).map((one) => one.object)).toEqual([
      `table "s"."${relation}"`,
      object,
    ])
  })

  test.each<[string, Partial<FoundTable>]>([
    ['of other types', { columns: tables[1]!.columns.map((one) => ({ ...one, type: 'json' })) }],
    ['without columns', { columns: [] }],
    ['that is none', { kind: 'v' }],
  ])('does without a table %s that is not used: nobody would be told to mend it', (_, given) => {
    const modes = { ...parts, deadLetters: 'discard' } as const
    const spoilt = tables.map((one) => (one.relation === 't_dead' ? { ...one, ...given } : one))

    expect(schemaDifferences(names, modes, { ...made, tables: spoilt, view: null })).toMatchObject([
      { object, sql: expect.not.stringContaining('"t_dead"') },
    ])
  })
})

test('no other drift is told or mended', () => {
  expect(() => mendSurface(names, { kind: 'mood' } as never, allTables)).toThrow('unreachable')
  expect(() => describeSurface({ kind: 'mood' } as never)).toThrow('unreachable')
})
