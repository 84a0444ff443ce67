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
  table: 'pkey lease ready due timer key failed failed_at failed_queue parked',
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
  const objects = objectNames(options)
  const schema = checked('schema', options.schema)
  const derived = (table: keyof Suffixes, suffix: string): string =>
    checked(`${table} with the suffix _${suffix}`, `${objects[table]}_${suffix}`)
  const index = Object.fromEntries(
    indexes.map(([table, suffix]) => [`${table}_${suffix}`, derived(table, suffix)]),
  ) as Record<IndexName, string>
  const sequences = {
    sequence: derived('table', 'seq_seq'),
    deadSequence: derived('dead', 'seq_seq'),
    deliveredSequence: derived('delivered', 'seq_seq'),
  }
  assertDistinct([objects, index, sequences].flatMap((names) => Object.values(names)))
  const within = (name: string): string => `${quote(schema)}.${quote(name)}`
  const { table: messages, ...others } = mapped(objects, within)
  return Object.freeze({
    ...others,
    ...mapped(sequences, within),
    messages,
    schema: quote(schema),
    index: Object.freeze(mapped(index, quote)),
    channel: checked('the channel made of schema and table', `postbox:${schema}.${objects.table}`),
    plain: Object.freeze({ schema, ...objects }),
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

type ObjectNames = Readonly<Record<'table' | (typeof derivedObjects)[number], string>>

type PlainNames = ObjectNames & { readonly schema: string }

function objectNames(options: NameOptions): ObjectNames {
  const table = checked('table', options.table)
  const others = derivedObjects.map((name) => [
    name,
    checked(`names.${name}`, options[name] ?? `${table}_${name}`),
  ])
  return { table, ...Object.fromEntries(others) }
}

function mapped<Name extends string>(
  names: Readonly<Record<Name, string>>,
  change: (name: string) => string,
): Record<Name, string> {
  const changed = Object.entries<string>(names).map(([key, name]) => [key, change(name)])
  return Object.fromEntries(changed)
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
