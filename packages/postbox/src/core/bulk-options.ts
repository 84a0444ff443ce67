import {
  type DeadLetterFilter,
  type DeadLetterQuery,
  delay,
  type ReplayQuery,
  resolveDeadLetterFilter,
} from './dead-letter-options.ts'
import { OutboxError } from './errors.ts'
import { type OperationCursor, readOperationCursor } from './operation-cursor.ts'
import { purgeShape } from './purge-options.ts'
import { show } from './show.ts'
import { isUuid } from './uuid.ts'
import {
  assertOptions,
  assertValue,
  type Check,
  callable,
  isRecord,
  name,
  type Shape,
  wholeNumber,
} from './validate.ts'

/** How far an operation has come. */
export interface OperationProgress {
  readonly operation: string
  /** Dead letters that were replayed or discarded so far, by whoever began it or resumed it. */
  readonly changed: number
  /** Those that stay dead because a timer of their name waits. */
  readonly conflicts: number
  readonly finished: boolean
}

interface Watching {
  /** Looked at between two batches. What is done then stays done. */
  readonly signal?: AbortSignal | undefined
  /** Once before the first batch, then after each. What it throws is ignored, and its promise is not awaited: to stop, use `signal`. */
  readonly onProgress?: ((progress: OperationProgress) => void) | undefined
}

export interface ReplayAllOptions extends Watching {
  /** Who replays them, for each message's history and the operation. At most 255 bytes. */
  readonly by: string
  /** Only look: how many they are, of which kind, and the oldest ones. @default false */
  readonly dryRun?: boolean | undefined
  /** At most so many become due in a second, evenly; fractions are fine. @default all at once */
  readonly perSecond?: number | undefined
  /** Replays no more than these. @default all */
  readonly limit?: number | undefined
  /** The messages' generation from now on. @default the one that each had */
  readonly generation?: number | undefined
  /** @default 0, at once */
  readonly delayMs?: number | undefined
}

export interface ResumeOptions extends Watching {
  /** Who goes on with it, for the history of what is replayed from now on. At most 255 bytes. */
  readonly by: string
}

export interface DiscardOptions extends Watching {
  /** Who discards them, for the operation. At most 255 bytes. */
  readonly by: string
}

export interface OperationListOptions {
  /** How many at most, from 1 to 1,000. @default 50 */
  readonly limit?: number | undefined
  /** The `next` of the page before. */
  readonly after?: string | undefined
}

/** How an operation replays, as it is stored; null: not asked for. */
export interface ReplaySettings extends Omit<ReplayQuery, 'by'> {
  readonly perSecond: number | null
  readonly limit: number | null
}

export interface ReplayAllQuery {
  readonly query: DeadLetterQuery
  readonly by: string
  readonly isDryRun: boolean
  readonly settings: ReplaySettings
}

const trueOrFalse: Check = (value) => (typeof value === 'boolean' ? null : 'to be true or false')

// Slower than one in eleven days, millions of them would be due after the last year that Postgres has.
const pace: Check = (value) =>
  typeof value === 'number' && value >= 0.000_001 && value <= 100_000
    ? null
    : 'to be a number from 0.000001 to 100000'

const by = name(255)
const watched = { by, signal: purgeShape.signal, onProgress: callable } satisfies Shape &
  Record<keyof ResumeOptions, Check>
const replayAllShape = {
  ...watched,
  dryRun: trueOrFalse,
  perSecond: pace,
  limit: wholeNumber(1),
  generation: wholeNumber(0),
  delayMs: delay,
} satisfies Shape & Record<keyof ReplayAllOptions, Check>
const listShape = {
  limit: wholeNumber(1, 1_000),
  after: (value) => (typeof value === 'string' ? null : 'to be a string'),
} satisfies Shape & Record<keyof OperationListOptions, Check>

/** Refuses a replay that nobody answers for, and one of everything that was not asked for: `{}` says that all are meant. */
export function resolveReplayAll(filter: DeadLetterFilter, given: ReplayAllOptions): ReplayAllQuery {
  assertAnswered(given, replayAllShape, 'the options of replayAll')
  const { dryRun = false, perSecond = null, limit = null, generation = null, delayMs = 0 } = given
  const settings = { perSecond, limit, generation, delayMs }
  return { query: resolveFilter(filter, 'replayAll'), by: given.by, isDryRun: dryRun, settings }
}

export function assertResume(operation: unknown, given: ResumeOptions): void {
  const check: Check = (value) => (isUuid(value) ? null : 'to be the id of an operation')
  assertValue('OUTBOX_INVALID_OPTION', { label: 'operation', check, value: operation })
  assertAnswered(given, watched, 'the options of resume')
}

export function resolveDiscard(filter: DeadLetterFilter, given: DiscardOptions): DeadLetterQuery {
  assertDiscard(given)
  return resolveFilter(filter, 'discard')
}

export function assertDiscard(given: DiscardOptions): void {
  assertAnswered(given, watched, 'the options of discard')
}

export function resolveOperationList(given: OperationListOptions = {}): {
  readonly limit: number
  readonly after: OperationCursor | null
} {
  assertOptions(given, listShape, 'the options of operations')
  const { limit = 50, after } = given
  return { limit, after: after === undefined ? null : readOperationCursor(after) }
}

function resolveFilter(filter: DeadLetterFilter, method: string): DeadLetterQuery {
  assertGiven(filter, `the filter of ${method}`, '{} when all are meant')
  const given = Object.entries(filter)
  // A field of a form that was left empty must not mean everything.
  if (given.length > 0 && given.every(([, value]) => value === undefined)) {
    const names = given.map(([name]) => `\`${name}\``).join(', ')
    const sentence = `expected the filter of ${method} to say something, got ${names} as undefined: give {} when all are meant`
    throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
  }
  return resolveDeadLetterFilter(filter)
}

/** Refuses what nobody answers for. */
export function assertAnswered(given: { readonly by: string }, shape: Shape, place: string): void {
  assertGiven(given, place, '{ by }')
  assertOptions(given, shape, place)
  assertValue('OUTBOX_INVALID_OPTION', { label: 'by', check: by, value: given.by })
}

export function assertGiven(given: unknown, place: string, give: string): void {
  if (isRecord(given)) return
  const sentence = `expected ${place} to be an object, got ${show(given)}: give ${give}`
  throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
}
