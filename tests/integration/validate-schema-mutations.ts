// Every way to spoil a schema, for each of its objects.
import type {
  ColumnObject,
  ConstraintObject,
  IndexObject,
  SchemaObjects,
  StorageObject,
} from './validate-schema-objects.ts'
import { each, type InSchema, type Mutation, type Sql } from './validate-schema-spoiling.ts'
import { ofFunction, ofView } from './validate-schema-surface.ts'

/** What must be tried on an object, by what it is. */
export function kindsFor(object: string): readonly string[] {
  if (object.startsWith('storage parameter ')) return kindsForStorage(object)
  if (/^table constraint \w+_pkey on /.test(object)) return ['drop', 'keys']
  const type = Object.keys(kindsByType).find((one) => object.startsWith(`${one} `))
  return kindsByType[type ?? ''] ?? ['drop']
}

const kindsByType: Readonly<Record<string, readonly string[]>> = {
  'table constraint': ['drop', 'predicate', 'validity'],
  table: ['drop', 'persistence'],
  column: ['drop', 'type', 'nullability'],
  'default value': ['drop', 'default'],
  sequence: [
    'drop',
    'increment',
    'minvalue',
    'maxvalue',
    'start',
    'cache',
    'cycle',
    'persistence',
    'by default',
    'name',
  ],
  index: ['drop', 'keys', 'order', 'uniqueness', 'predicate', 'validity'],
  view: ['drop', 'definition', 'columns', 'rights', 'kind'],
  function: [
    'drop',
    'argument names',
    'argument types',
    'result',
    'language',
    'body',
    'rights',
    'settings',
    'volatility',
    'parallel safety',
    'strictness',
    'public',
  ],
}

/** Costs, and how high a threshold is, are the owner's choice. */
function kindsForStorage(object: string): readonly string[] {
  if (object.includes('_cost_')) return []
  return object.includes('_threshold') ? ['drop'] : ['drop', 'value']
}

export function mutationsOf(schema: string, objects: SchemaObjects): readonly Mutation[] {
  const within = (name: string): string => `"${schema}"."${name}"`
  const inSchema = { within, objects }
  return [
    ...objects.tables.flatMap((table) => ofTable(inSchema, table)),
    ...objects.columns.flatMap((column) => ofColumn(inSchema, column)),
    ...objects.primaryKeys.flatMap((key) => ofPrimaryKey(inSchema, key)),
    ...objects.checks.flatMap((check) => ofCheck(inSchema, check)),
    ...objects.indexes.flatMap((index) => ofIndex(inSchema, index)),
    ...objects.storage.flatMap((parameter) => ofStorage(inSchema, parameter)),
    ...objects.views.flatMap((view) => ofView(inSchema, view)),
    ...objects.functions.flatMap((one) => ofFunction(inSchema, one)),
  ]
}

function ofTable({ within }: InSchema, table: string): Mutation[] {
  const name = within(table)
  return each(`table ${table}`, `table ${name}`, {
    drop: `drop table ${name} cascade`,
    persistence: `alter table ${name} set unlogged`,
  })
}

// Each can hold what the rows of the tests have, and gives it back.
const otherTypes: Sql = {
  bigint: 'integer',
  integer: 'bigint',
  text: 'character varying(300)',
  uuid: 'text',
  bytea: 'text',
  jsonb: 'json',
  boolean: 'text',
  'timestamp with time zone': 'timestamp without time zone',
}

const otherValues: Sql = {
  bigint: '7',
  integer: '7',
  text: `'other'`,
  uuid: 'gen_random_uuid()',
  bytea: `'\\x00'`,
  jsonb: `'{}'`,
  boolean: 'true',
  'timestamp with time zone': `'2000-01-01'`,
}

function ofColumn(inSchema: InSchema, column: ColumnObject): Mutation[] {
  const { table, name, type } = column
  const alter = `alter table ${inSchema.within(table)}`
  const object = `column ${inSchema.within(table)}.${name}`
  const other = otherTypes[type] ?? 'unknown'
  const alterColumn = `${alter} alter column ${name}`
  const setDefault = `${alterColumn} set default ${otherValues[type]}`
  // What a view reads cannot be altered.
  const retype = inSchema.objects.views.map((view) => `drop view if exists ${inSchema.within(view.name)}; `)
  return [
    ...each(`column ${table}.${name}`, object, {
      drop: `${alter} drop column ${name} cascade`,
      type: `${retype}${alterColumn} type ${other} using ${name}::${other}`,
      nullability: nullability(inSchema, column),
      ...(column.isNumbered ? {} : { 'default of its own': setDefault }),
      ...(column.isBytewise ? { collation: `${retype}${alterColumn} type text collate "POSIX"` } : {}),
    }),
    ...(column.hasDefault
      ? each(`default value for ${table}.${name}`, object, {
          drop: `${alterColumn} drop default`,
          default: setDefault,
        })
      : []),
    ...(column.isNumbered ? ofSequence(inSchema, column) : []),
  ]
}

/** A key, or a column with an identity, has to lose that first. */
function nullability({ within, objects }: InSchema, column: ColumnObject): string {
  const { table, name, isRequired, isKey, isNumbered } = column
  const key = objects.primaryKeys.find((one) => one.table === table)?.name
  const steps = [
    ...(isKey ? [`drop constraint ${key}`] : []),
    ...(isNumbered ? [`alter column ${name} drop identity`] : []),
    `alter column ${name} ${isRequired ? 'drop' : 'set'} not null`,
  ]
  return steps.map((step) => `alter table ${within(table)} ${step}`).join('; ')
}

function ofSequence({ within }: InSchema, { table, name }: ColumnObject): Mutation[] {
  const alter = `alter table ${within(table)} alter column ${name}`
  // Ours are named after the table, not after the column.
  const sequence = `${table}_seq_seq`
  return each(`sequence ${sequence}`, `column ${within(table)}.${name}`, {
    drop: `${alter} drop identity`,
    increment: `${alter} set increment 2`,
    minvalue: `${alter} set minvalue -5`,
    maxvalue: `${alter} set maxvalue 1000000`,
    start: `${alter} set start 5`,
    cache: `${alter} set cache 20`,
    cycle: `${alter} set cycle`,
    persistence: `alter sequence ${within(sequence)} set unlogged`,
    'by default': `${alter} set generated by default`,
    name: `alter sequence ${within(sequence)} rename to other_seq`,
  })
}

function ofPrimaryKey(
  { within, objects }: InSchema,
  { table, name, keys }: SchemaObjects['primaryKeys'][number],
): Mutation[] {
  const drop = `alter table ${within(table)} drop constraint ${name}`
  const another = objects.columns.find(
    (column) => column.table === table && column.isRequired && !keys.includes(column.name),
  )?.name
  const replace = (...given: readonly unknown[]): string =>
    `${drop}; alter table ${within(table)} add constraint ${name} primary key (${given.join(', ')})`
  return each(`table constraint ${name} on ${table}`, `primary key "${name}" on ${within(table)}`, {
    drop,
    keys: replace(...keys, another),
    ...(keys.length === 1 ? {} : { 'keys in another order': replace(...keys.toReversed()) }),
    'other index': `${drop}; create unique index ${name} on ${within(table)} (${keys.join(', ')})`,
  })
}

function ofCheck({ within }: InSchema, { table, name, definition }: ConstraintObject): Mutation[] {
  const drop = `alter table ${within(table)} drop constraint ${name}`
  const add = `${drop}; alter table ${within(table)} add constraint ${name}`
  return each(`table constraint ${name} on ${table}`, `constraint "${name}" on ${within(table)}`, {
    drop,
    predicate: `${add} ${definition.replace(' = ', ' <> ')} not valid`,
    validity: `${add} ${definition} not valid`,
  })
}

function ofIndex({ within, objects }: InSchema, index: IndexObject): Mutation[] {
  const { table, name, isUnique, keys, predicate } = index
  const another = objects.columns.find(
    (column) => column.table === table && !keys.includes(column.name) && column.type !== 'jsonb',
  )?.name as string
  const recreate = (given: Partial<IndexObject> & { readonly include?: string }): string => {
    const made = { include: '', ...index, ...given }
    const create = `create ${made.isUnique ? 'unique ' : ''}index ${name} on ${within(table)}`
    const where = made.predicate === null ? '' : ` where ${made.predicate}`
    return `drop index ${within(name)}; ${create} (${made.keys.join(', ')})${made.include}${where}`
  }
  const [first, ...rest] = keys
  return each(`index ${name}`, `index ${within(name)}`, {
    drop: `drop index ${within(name)}`,
    keys: recreate({ keys: [...keys, another] }),
    'fewer keys': recreate({ keys: rest.length === 0 ? [another] : rest }),
    ...(rest.length === 0 ? {} : { 'keys in another order': recreate({ keys: [...rest, `${first}`] }) }),
    'an expression': recreate({ keys: [`(${first} is null)`, ...rest] }),
    included: recreate({ include: ` include (${another})` }),
    order: recreate({ keys: [`${first} desc`, ...rest] }),
    'order of nulls': recreate({ keys: [`${first} nulls first`, ...rest] }),
    uniqueness: recreate({ isUnique: !isUnique }),
    predicate: recreate({ predicate: predicate === null ? `${another} is not null` : null }),
    'other predicate': recreate({ predicate: `${another} is null` }),
    validity: `update pg_index set indisvalid = false where indexrelid = '${within(name)}'::regclass`,
  })
}

function ofStorage({ within }: InSchema, { table, name, value }: StorageObject): Mutation[] {
  const alter = `alter table ${within(table)}`
  const touches = `storage parameter ${name} of ${table}`
  const other = value === 'off' ? 'on' : name === 'fillfactor' ? 90 : 0.1
  const mutations = each(touches, `storage parameter ${name} of ${within(table)}`, {
    drop: `${alter} reset (${name})`,
    value: `${alter} set (${name} = ${other})`,
  })
  return mutations.filter(({ kind }) => kindsForStorage(touches).includes(kind))
}
