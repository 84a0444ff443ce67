import { describe, expect, test } from 'vitest'
import { findDrift } from './schema-drift.ts'
import type { Column, ExpectedTable, FoundColumn, FoundIndex, FoundTable } from './schema-shape.ts'

const column = (name: string, given: Partial<Column> = {}): Column => ({
  name,
  type: 'text',
  collation: null,
  notNull: false,
  default: null,
  identity: null,
  ...given,
})
const identity = {
  always: true,
  sequence: '"s"."t_seq"',
  sequenceName: '"t_seq"',
  parameters: ['cache 1'],
  isLogged: true,
}
const timer = {
  name: '"s"."t_timer"',
  unique: true,
  keys: ['queue', 'timer'],
  predicate: '(timer IS NOT NULL)',
}

const table: ExpectedTable = {
  name: '"s"."t"',
  relation: 't',
  columns: [
    column('seq', { type: 'bigint', notNull: true, identity }),
    column('queue', { collation: 'C', notNull: true }),
    column('timer'),
    column('attempts', { type: 'integer', default: '0' }),
  ],
  primaryKey: { name: '"t_pkey"', index: '"s"."t_pkey"', keys: ['seq'] },
  indexes: [{ ...timer, create: 'create unique index' }],
  checks: [{ name: '"t_lease"', predicate: '(a = b)', condition: 'a = b', prepare: 'update' }],
  storage: [
    { kind: 'equal', name: 'fillfactor', value: 45 },
    { kind: 'equal', name: 'vacuum_truncate', value: 'off' },
    { kind: 'set', name: 'threshold', value: 1000 },
    { kind: 'not_off', name: 'enabled', value: 'on' },
  ],
  onlyPublished: ['queue'],
  holdsSteps: false,
  create: ['create table'],
}

const foundColumn = (given: Column): FoundColumn => ({
  ...given,
  quoted: `"${given.name}"`,
  generated: false,
  refusesNull: given.notNull,
})
const foundIndex = (given: Partial<FoundIndex>): FoundIndex => ({
  ...timer,
  isPrimary: false,
  constraint: null,
  reads: given.keys ?? timer.keys,
  oddities: '',
  ...given,
})
const primary = foundIndex({ name: '"s"."t_pkey"', keys: ['seq'], predicate: null, isPrimary: true })

const found: FoundTable = {
  relation: 't',
  kind: 'r',
  isLogged: true,
  columns: table.columns.map(foundColumn),
  indexes: [primary, foundIndex({})],
  checks: [{ name: '"t_lease"', predicate: '(a = b)', valid: true }],
  storage: { fillfactor: '45', vacuum_truncate: 'off', threshold: '7' },
}

const driftWith = (given: Partial<FoundTable>) => findDrift([table], [{ ...found, ...given }])
const kindsWith = (given: Partial<FoundTable>) => driftWith(given).map(({ kind }) => kind)
/** All columns, one of them otherwise. */
const columnsWith = (name: string, given: Partial<FoundColumn>) =>
  found.columns.map((one) => (one.name === name ? { ...one, ...given } : one))

describe('a table', () => {
  test('as it must be has no drift', () => {
    expect(driftWith({})).toEqual([])
  })

  test('that is missing is one drift, and nothing is said about its parts', () => {
    expect(findDrift([table], [])).toEqual([{ table, kind: 'table', found: null }])
  })

  test('whose name something else has is one drift', () => {
    const view = { ...found, kind: 'v', columns: [] }
    expect(findDrift([table], [view])).toEqual([{ table, kind: 'table', found: view }])
  })

  test('that is partitioned is compared as any', () => {
    expect(driftWith({ kind: 'p' })).toEqual([])
  })

  test('that a crash empties is told', () => {
    expect(kindsWith({ isLogged: false })).toEqual(['persistence'])
  })

  test('with several drifts has what others are built on first', () => {
    const kinds = kindsWith({ isLogged: false, columns: [], indexes: [], checks: [], storage: {} })
    expect([...new Set(kinds)]).toEqual(['persistence', 'column', 'primary_key', 'check', 'index', 'storage'])
  })
})

describe('a column', () => {
  test('that is missing is told', () => {
    const columns = found.columns.filter(({ name }) => name !== 'timer')
    expect(driftWith({ columns })).toMatchObject([{ kind: 'column', column: { name: 'timer' }, found: null }])
  })

  test.each<[string, string, Partial<FoundColumn>]>([
    ['type', 'timer', { type: 'uuid' }],
    ['nullability', 'timer', { notNull: true }],
    ['default', 'timer', { default: `'x'::text` }],
    ['default that is gone', 'attempts', { default: null }],
    ['collation', 'queue', { collation: null }],
    ['computation', 'timer', { generated: true }],
    ['numbering that is gone', 'seq', { identity: null }],
    ['numbering that can be evaded', 'seq', { identity: { ...identity, always: false } }],
    ['sequence with a cache', 'seq', { identity: { ...identity, parameters: ['cache 9'] } }],
    ['sequence under another name', 'seq', { identity: { ...identity, sequence: '"s"."x"' } }],
    ['sequence that a crash resets', 'seq', { identity: { ...identity, isLogged: false } }],
  ])('is compared by its %s', (_, name, given) => {
    expect(driftWith({ columns: columnsWith(name, given) })).toMatchObject([
      { kind: 'column', column: { name }, found: { name, ...given } },
    ])
  })

  test('of which no collation is asked may have any', () => {
    expect(driftWith({ columns: columnsWith('timer', { collation: 'de-x-icu' }) })).toEqual([])
  })

  test.each<[string, Partial<FoundColumn>]>([
    ['may be null', {}],
    ['has a default', { notNull: true, default: '1' }],
    ['numbers itself', { notNull: true, identity }],
    ['is computed', { notNull: true, generated: true }],
  ])('of somebody else’s passes when it %s', (_, given) => {
    const extra = { ...foundColumn(column('extra')), ...given }
    expect(driftWith({ columns: [...found.columns, extra] })).toEqual([])
  })

  test('of somebody else’s that no insert fills is told', () => {
    const extra = foundColumn(column('extra', { notNull: true }))
    expect(driftWith({ columns: [...found.columns, extra] })).toEqual([
      { table, kind: 'required_column', found: extra },
    ])
  })
})

describe('a primary key', () => {
  test('may have another name', () => {
    expect(driftWith({ indexes: [{ ...primary, name: '"s"."pk"' }, foundIndex({})] })).toEqual([])
  })

  test.each([
    ['with another column', { keys: ['seq', 'queue'] }],
    ['that is checked late', { oddities: 'deferrable' }],
  ])('%s is told', (_, given) => {
    const other = { ...primary, ...given }
    expect(driftWith({ indexes: [other, foundIndex({})] })).toEqual([
      { table, kind: 'primary_key', found: other },
    ])
  })

  test('that is missing is told with what has its name', () => {
    const index = { ...primary, isPrimary: false }
    expect(driftWith({ indexes: [foundIndex({})] })).toMatchObject([{ kind: 'primary_key', found: null }])
    expect(driftWith({ indexes: [index, foundIndex({})] })).toMatchObject([
      { kind: 'primary_key', found: index },
    ])
  })
})

describe('a CHECK', () => {
  const [check] = found.checks

  test('is known by what it says, under any name', () => {
    expect(kindsWith({ checks: [{ name: '"ck"', predicate: '(a = b)', valid: true }] })).toEqual([])
  })

  test('that never looked at the rows is told, unless another one did', () => {
    const late = { name: '"ck"', predicate: '(a = b)', valid: false }
    expect(driftWith({ checks: [late] })).toMatchObject([{ kind: 'check', found: late }])
    expect(driftWith({ checks: check === undefined ? [] : [late, check] })).toEqual([])
  })

  test('that says something else is told when it has our name, and is not ours when it has another', () => {
    const other = { name: '"t_lease"', predicate: '(a < b)', valid: true }
    expect(driftWith({ checks: [other] })).toMatchObject([{ kind: 'check', found: other }])
    expect(driftWith({ checks: [{ ...other, name: '"ck"' }] })).toMatchObject([
      { kind: 'check', found: null },
    ])
  })
})

describe('an index', () => {
  test('is known by what it is, under any name', () => {
    expect(driftWith({ indexes: [primary, foundIndex({ name: '"s"."ix"' })] })).toEqual([])
  })

  test.each<[string, Partial<FoundIndex>]>([
    ['columns', { keys: ['queue'] }],
    ['order of columns', { keys: ['timer', 'queue'] }],
    ['uniqueness', { unique: false }],
    ['predicate', { predicate: '(timer IS NULL)' }],
    ['want of a predicate', { predicate: null }],
    ['validity', { oddities: 'invalid' }],
  ])('is compared by its %s', (_, given) => {
    const other = foundIndex(given)
    expect(driftWith({ indexes: [primary, other] })).toMatchObject([{ kind: 'index', found: other }])
  })

  test.each<[string, Partial<FoundIndex>]>([
    ['is not unique', { unique: false, keys: ['attempts'] }],
    ['can only refuse a publish', { keys: ['queue'], predicate: null }],
    ['reads a column of theirs', { keys: ['extra'] }],
    ['has the key among its columns', { keys: ['attempts', 'seq'] }],
    ['is the same as ours', {}],
  ])('of somebody else’s passes when it %s', (_, given) => {
    const extra = foundIndex({ name: '"s"."extra"', ...given })
    expect(driftWith({ indexes: [...found.indexes, extra] })).toEqual([])
  })

  test('of somebody else’s that can refuse what the outbox writes is told', () => {
    const extra = foundIndex({ name: '"s"."extra"', keys: ['queue'], reads: ['queue', 'attempts'] })
    expect(driftWith({ indexes: [...found.indexes, extra] })).toEqual([
      { table, kind: 'refusing_index', found: extra },
    ])
  })

  test('that is wrong is told once, though it could refuse, too', () => {
    expect(kindsWith({ indexes: [primary, foundIndex({ keys: ['timer'] })] })).toEqual(['index'])
  })
})

describe('a storage parameter', () => {
  test.each([
    ['equal, in other digits', { ...found.storage, fillfactor: '45.0' }, []],
    ['another number', { ...found.storage, fillfactor: '90' }, ['fillfactor']],
    ['another word', { ...found.storage, vacuum_truncate: 'on' }, ['vacuum_truncate']],
    ['any threshold', { ...found.storage, threshold: '-1' }, []],
    ['on', { ...found.storage, enabled: 'on' }, []],
    ['off', { ...found.storage, enabled: 'off' }, ['enabled']],
    ['nothing', {}, ['fillfactor', 'vacuum_truncate', 'threshold']],
  ])('%s', (_, storage, told) => {
    const drift = driftWith({ storage: storage as FoundTable['storage'] })
    expect(drift.map((one) => one.kind === 'storage' && one.rule.name)).toEqual(told)
  })
})
