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
  readonly handled: string
  readonly queues: string
  readonly meta: string
  /** Names of indexes and constraints, without schema: they live where their table lives. */
  readonly index: Readonly<Record<IndexName, string>>
  /** `"schema"."table_seq_seq"`. */
  readonly sequence: string
  readonly deadSequence: string
  /** The channel of NOTIFY, unquoted: a value for `pg_notify`. */
  readonly channel: string
  /** As they were given, for catalogue look-ups and messages. */
  readonly plain: PlainNames
}

export type IndexName = keyof typeof derivedNames

/** Indexes and constraints by the table they belong to: table → suffix. */
const derivedNames = {
  primary: ['table', 'pkey'],
  lease: ['table', 'lease'],
  ready: ['table', 'ready'],
  due: ['table', 'due'],
  timer: ['table', 'timer'],
  key: ['table', 'key'],
  failed: ['table', 'failed'],
  deadPrimary: ['dead', 'pkey'],
  deadId: ['dead', 'id'],
  deadQueue: ['dead', 'queue'],
  deadFailed: ['dead', 'failed'],
  handledPrimary: ['handled', 'pkey'],
  queuesPrimary: ['queues', 'pkey'],
  metaPrimary: ['meta', 'pkey'],
} as const

export interface NameOptions {
  readonly schema: string
  readonly table: string
  readonly dead?: string | undefined
  readonly handled?: string | undefined
  readonly queues?: string | undefined
  readonly meta?: string | undefined
}

// Postgres cuts longer identifiers short without an error: two tables could end up sharing one index name.
const longestBytes = 63

export function resolveNames(options: NameOptions): Names {
  const plain = plainNames(options)
  const within = (name: string): string => `${quote(plain.schema)}.${quote(name)}`
  const index = Object.entries(derivedNames).map(([name, [table, suffix]]) => [
    name,
    quote(derived(plain, table, suffix)),
  ])
  return Object.freeze({
    schema: quote(plain.schema),
    messages: within(plain.table),
    dead: within(plain.dead),
    handled: within(plain.handled),
    queues: within(plain.queues),
    meta: within(plain.meta),
    index: Object.freeze(Object.fromEntries(index) as Record<IndexName, string>),
    sequence: within(derived(plain, 'table', 'seq_seq')),
    deadSequence: within(derived(plain, 'dead', 'seq_seq')),
    channel: checked('the channel made of schema and table', `postbox:${plain.schema}.${plain.table}`),
    plain: Object.freeze(plain),
  })
}

type PlainNames = Readonly<Record<'schema' | 'table' | 'dead' | 'handled' | 'queues' | 'meta', string>>

function plainNames(options: NameOptions): PlainNames {
  const table = checked('table', options.table)
  const plain = {
    schema: checked('schema', options.schema),
    table,
    dead: checked('names.dead', options.dead ?? `${table}_dead`),
    handled: checked('names.handled', options.handled ?? `${table}_handled`),
    queues: checked('names.queues', options.queues ?? `${table}_queues`),
    meta: checked('names.meta', options.meta ?? `${table}_meta`),
  }
  const { schema: _, ...tables } = plain
  const indexes = Object.values(derivedNames).map(([table, suffix]) => `${plain[table]}_${suffix}`)
  assertDistinct([...Object.values(tables), ...indexes, `${plain.table}_seq_seq`, `${plain.dead}_seq_seq`])
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
