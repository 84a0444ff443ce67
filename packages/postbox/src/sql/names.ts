import { OutboxError } from '../core/errors.ts'
import { show } from '../core/show.ts'
import { byteLength, textProblem } from '../core/text.ts'

/** Every identifier that a statement uses: quoted once, here, and checked against Postgres' limit once, here. */
export interface Names {
  /** `"schema"`, for DDL. */
  readonly schema: string
  /** `"schema"."table"` of each table. */
  readonly messages: string
  readonly dead: string
  readonly delivered: string
  readonly handled: string
  readonly queues: string
  readonly operations: string
  readonly meta: string
  /** The view of all messages, and the function that replays one: for people with a SQL client. */
  readonly status: string
  readonly replay: string
  /** Names of indexes and constraints, without schema: they live where their table lives. */
  readonly index: Readonly<Record<IndexName, string>>
  /** `"schema"."table_seq_seq"`. */
  readonly sequence: string
  readonly deadSequence: string
  readonly deliveredSequence: string
  /** The channel of NOTIFY, unquoted: a value for `pg_notify`. */
  readonly channel: string
  /** As they were given, for catalogue look-ups and messages. */
  readonly plain: PlainNames
}

/** Indexes and constraints by the table they belong to: what follows its name in theirs. */
const suffixes = {
  table: 'pkey lease ready due timer key failed failed_at failed_queue',
  dead: 'pkey id queue failed',
  delivered: 'pkey id at',
  handled: 'pkey at',
  queues: 'pkey',
  operations: 'pkey started',
  meta: 'pkey',
} as const

const indexes = Object.entries(suffixes).flatMap(([table, texts]) =>
  texts.split(' ').map((suffix) => [table as keyof Suffixes, suffix] as const),
)

type Suffixes = typeof suffixes
type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text

/** As `table_ready`, whatever the table is called. */
export type IndexName = { [T in keyof Suffixes]: `${T}_${Words<Suffixes[T]>}` }[keyof Suffixes]

export interface NameOptions {
  readonly schema: string
  readonly table: string
  readonly dead?: string | undefined
  readonly delivered?: string | undefined
  readonly handled?: string | undefined
  readonly queues?: string | undefined
  readonly operations?: string | undefined
  readonly meta?: string | undefined
  readonly status?: string | undefined
  readonly replay?: string | undefined
}

// Postgres cuts longer identifiers short without an error: two tables could end up sharing one index name.
const longestBytes = 63

export function resolveNames(options: NameOptions): Names {
  const plain = plainNames(options)
  const within = (name: string): string => `${quote(plain.schema)}.${quote(name)}`
  const index = indexes.map(([table, suffix]) => [`${table}_${suffix}`, quote(derived(plain, table, suffix))])
  const objects = derivedObjects.map((name) => [name, within(plain[name])])
  return Object.freeze({
    ...(Object.fromEntries(objects) as Record<DerivedObject, string>),
    schema: quote(plain.schema),
    messages: within(plain.table),
    index: Object.freeze(Object.fromEntries(index) as Record<IndexName, string>),
    sequence: within(derived(plain, 'table', 'seq_seq')),
    deadSequence: within(derived(plain, 'dead', 'seq_seq')),
    deliveredSequence: within(derived(plain, 'delivered', 'seq_seq')),
    channel: checked('the channel made of schema and table', `postbox:${plain.schema}.${plain.table}`),
    plain: Object.freeze(plain),
  })
}

/** Tables, then a view and a function. */
const derivedObjects = [
  'dead',
  'delivered',
  'handled',
  'queues',
  'operations',
  'meta',
  'status',
  'replay',
] as const

type DerivedObject = (typeof derivedObjects)[number]

type PlainNames = Readonly<Record<'schema' | 'table' | DerivedObject, string>>

function plainNames(options: NameOptions): PlainNames {
  const table = checked('table', options.table)
  const others = derivedObjects.map((name) => [
    name,
    checked(`names.${name}`, options[name] ?? `${table}_${name}`),
  ])
  const objects = { table, ...Object.fromEntries(others) }
  const plain: PlainNames = { schema: checked('schema', options.schema), ...objects }
  const derived = indexes.map(([table, suffix]) => `${plain[table]}_${suffix}`)
  const sequences = [plain.table, plain.dead, plain.delivered].map((name) => `${name}_seq_seq`)
  assertDistinct([...Object.values<string>(objects), ...derived, ...sequences])
  return plain
}

function derived(plain: PlainNames, table: keyof PlainNames, suffix: string): string {
  return checked(`${table} with the suffix _${suffix}`, `${plain[table]}_${suffix}`)
}

function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`
}

/** A constant of ours inside a statement's text (the channel, say); values of callers are always parameters. */
export function literal(text: string): string {
  return text.includes('\\')
    ? ` E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
    : `'${text.replaceAll("'", "''")}'`
}

function checked(label: string, identifier: unknown): string {
  const problem = identifierProblem(identifier)
  if (problem === null) return identifier as string
  throw new OutboxError(
    'OUTBOX_INVALID_NAME',
    `expected \`${label}\` to be ${problem}, got ${show(identifier)}`,
  )
}

function identifierProblem(identifier: unknown): string | null {
  if (typeof identifier !== 'string' || identifier === '') return 'a non-empty string'
  const inText = textProblem(identifier)
  if (inText !== null) return `a valid identifier, but it ${inText}`
  const bytes = byteLength(identifier)
  return bytes <= longestBytes ? null : `at most ${longestBytes} bytes long (it has ${bytes})`
}

function assertDistinct(relations: readonly string[]): void {
  const twice = relations.find((name, index) => relations.indexOf(name) !== index)
  if (twice === undefined) return
  throw new OutboxError(
    'OUTBOX_INVALID_NAME',
    `expected each table to have a name of its own, got ${show(twice)} twice`,
  )
}
