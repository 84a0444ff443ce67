import type { Codec } from './codec.ts'
import { OutboxError } from './errors.ts'
import type { OutboxEvent } from './events.ts'
import type { Logger } from './log.ts'
import type { Middleware } from './middleware.ts'
import type { QueueMap } from './queues.ts'
import { isStandardSchema } from './standard-schema.ts'
import type { DeadLetterStorage, DeliveredStorage } from './storage-modes.ts'
import {
  filled,
  resolveSubscribeOptions,
  type SubscribeOptions,
  type SubscribeSettings,
  subscribeShape,
} from './subscribe-options.ts'
import {
  anything,
  type Check,
  callable,
  expected,
  isRecord,
  name,
  oneOf,
  optionProblems,
  type Shape,
  wholeNumber,
} from './validate.ts'

/** Options of createOutbox, without `database` and `orm`, whose types belong to the clients. */
export interface OutboxSettingsInput<M extends QueueMap = QueueMap> {
  /** Queue name → definition. Absent: any name, `unknown` bodies. */
  readonly queues?: M
  /** @default 'public' */
  readonly schema?: string
  /** @default 'outbox' */
  readonly table?: string
  /** The other tables, the view and the function. @default derived from `table`: `outbox_dead`, `outbox_delivered` … */
  readonly names?: {
    readonly dead?: string
    readonly delivered?: string
    readonly handled?: string
    readonly queues?: string
    readonly operations?: string
    readonly meta?: string
    /** The view of all messages, for auditors. */
    readonly status?: string
    /** The function that replays a dead letter, for operators with a SQL client. */
    readonly replay?: string
  }
  /** When publishers notify: only if somebody sleeps, always, or never. @default 'quiet' */
  readonly wake?: 'quiet' | 'always' | 'poll'
  /**
   * What becomes of a message that is given up: it is moved to the dead letters, kept where it lies, or deleted. All that is kept is read in
   * either mode, so it can be changed at any time. @default 'table'
   */
  readonly deadLetters?: 'table' | 'in-place' | 'discard'
  /** What becomes of a message that was delivered: it is deleted, or moved to a table for audit (see `outbox.delivered`). @default 'delete' */
  readonly delivered?: 'delete' | 'table'
  /**
   * Which generation of your code this is: raise it with a deployment that publishes what the one before cannot handle. Stamped on every message; and
   * only messages of this generation, of older ones or of none are claimed. Newer ones stay, and nothing is counted against them, until a process of
   * their generation comes. @default none: messages have none, and all are claimed
   */
  readonly generation?: number
  /** Names this service: stamped on every message as its header `source`, unless it has one. */
  readonly source?: string
  /** @default JSON; strings as text, bytes as they are, null as nothing */
  readonly codec?: Codec
  /** @default 1_048_576 */
  readonly maxBodyBytes?: number
  /** Subscriber options for every subscription. */
  readonly defaults?: SubscribeOptions
  /** How an error is recorded with its message; null: not at all. Always cut to 8 KiB. @default its name, its message, and its causes */
  readonly describeError?: (error: unknown) => string | null
  /** Wraps publishing and handlers: the first one is the outermost. */
  readonly middleware?: readonly Middleware[]
  /** Hears of everything that happens, told apart by `kind`. Must not block: it is not waited for, and what it throws is only logged. */
  readonly onEvent?: (event: OutboxEvent) => unknown
  /** @default warnings and errors to the console; false: none */
  readonly logger?: Logger | false
  /** How long `stop` lets handlers finish before it aborts their signal. @default 15_000 */
  readonly stopTimeoutMs?: number
}

export interface OutboxSettings {
  readonly queues: QueueMap | null
  readonly schema: string
  readonly table: string
  readonly names: NonNullable<OutboxSettingsInput['names']>
  readonly wake: 'quiet' | 'always' | 'poll'
  readonly deadLetters: DeadLetterStorage
  readonly delivered: DeliveredStorage
  readonly generation: number | null
  readonly source: string | null
  readonly codec: Codec | undefined
  readonly maxBodyBytes: number
  readonly defaults: SubscribeSettings
  readonly describeError: ((error: unknown) => string | null) | undefined
  readonly middleware: readonly Middleware[]
  readonly onEvent: ((event: OutboxEvent) => unknown) | undefined
  readonly logger: Logger | false | undefined
  readonly stopTimeoutMs: number
}

const record: Check = (value) => (isRecord(value) ? null : 'to be an object')

/** Identifiers have an error code and limits of their own: see sql/names.ts. */
const shape = {
  // Looked at where they are used: their values are not for a message, since there may be a password in them.
  database: anything,
  orm: anything,
  queues: record,
  schema: anything,
  table: anything,
  names: record,
  wake: oneOf('quiet', 'always', 'poll'),
  deadLetters: oneOf('table', 'in-place', 'discard'),
  delivered: oneOf('delete', 'table'),
  generation: wholeNumber(0),
  source: name(255),
  codec: (value) => codecProblem(value),
  maxBodyBytes: wholeNumber(1, 256 * 1024 * 1024),
  defaults: record,
  describeError: callable,
  middleware: (value) => (Array.isArray(value) ? null : 'to be an array of { publish, consume }'),
  onEvent: callable,
  logger: (value) =>
    value === false
      ? null
      : callable(value) && 'to be a function of one entry, or false (console is the default: leave it out)',
  stopTimeoutMs: wholeNumber(0, 86_400_000),
} satisfies Shape & Record<keyof OutboxSettingsInput | 'database' | 'orm', Check>

const queueShape: Shape = {
  body: (value) =>
    isStandardSchema(value) ? null : 'to be a Standard Schema (zod, valibot, arktype …) or typed<T>()',
  codec: codecProblem,
  order: oneOf('none', 'key'),
}

const namesShape: Shape = {
  dead: anything,
  delivered: anything,
  handled: anything,
  queues: anything,
  operations: anything,
  meta: anything,
  status: anything,
  replay: anything,
}

const middlewareShape = { publish: callable, consume: callable } satisfies Shape &
  Record<keyof Middleware, Check>

/** Checks everything at once, fills the defaults, freezes: nothing downstream checks again. */
export function resolveOutboxOptions(given: OutboxSettingsInput): OutboxSettings {
  const problems = [
    ...optionProblems(given, shape, 'the options of createOutbox'),
    ...nested(given?.queues, queueProblems),
    ...nested(given?.names, (names) => optionProblems(names, namesShape, { within: 'names' })),
    ...nested(given?.defaults, (defaults) =>
      optionProblems(defaults, subscribeShape, { within: 'defaults' }),
    ),
    ...middlewareProblems(given?.middleware),
  ]
  if (problems.length > 0) throw new OutboxError('OUTBOX_INVALID_OPTION', problems.join('; '))
  const defaults = resolveSubscribeOptions(given.defaults)
  const middleware = Object.freeze([...(given.middleware ?? [])])
  return Object.freeze({ ...filled(defaultSettings, given), defaults, middleware })
}

const defaultSettings: Omit<OutboxSettings, 'defaults' | 'middleware'> = {
  queues: null,
  schema: 'public',
  table: 'outbox',
  names: {},
  wake: 'quiet',
  deadLetters: 'table',
  delivered: 'delete',
  generation: null,
  source: null,
  codec: undefined,
  maxBodyBytes: 1_048_576,
  describeError: undefined,
  onEvent: undefined,
  logger: undefined,
  stopTimeoutMs: 15_000,
}

function nested(value: unknown, check: (value: Record<string, unknown>) => string[]): string[] {
  return isRecord(value) ? check(value) : []
}

function queueProblems(queues: Record<string, unknown>): string[] {
  return Object.entries(queues).flatMap(([queue, definition]) => {
    const inName = name(255)(queue)
    if (isStandardSchema(definition)) return [`queue "${queue}" is a schema: write { body: schema }`]
    const inQueue = optionProblems(definition, queueShape, `queue "${queue}"`).map(
      (text) => `queue "${queue}": ${text}`,
    )
    return inName === null ? inQueue : [expected('a queue name', inName, queue), ...inQueue]
  })
}

function middlewareProblems(given: unknown): string[] {
  // Array.from visits holes, too: a condition that failed to give one must not pass for none.
  return Array.from(Array.isArray(given) ? given : [], (one, index) =>
    optionProblems(one, middlewareShape, 'it').map((text) => `middleware[${index}]: ${text}`),
  ).flat()
}

function codecProblem(value: unknown): string | null {
  const codec = value as Partial<Codec> | null
  const isCodec =
    name(255)(codec?.contentType) === null &&
    typeof codec?.encode === 'function' &&
    typeof codec?.decode === 'function'
  return isCodec ? null : 'to be { contentType, encode, decode }'
}
