import { type DeadLetterCursor, readCursor } from './dead-letter-cursor.ts'
import { OutboxError } from './errors.ts'
import { assertQueue } from './queue-name.ts'
import type { DeadReason } from './settlement.ts'
import { show } from './show.ts'
import { suggest } from './suggest.ts'
import { isUuid } from './uuid.ts'
import {
  anything,
  assertOptions,
  assertValue,
  type Check,
  isRecord,
  name,
  oneOf,
  type Shape,
  wholeNumber,
} from './validate.ts'

/** Which dead letters; all that is given must hold. Queue and times are looked up, the rest is compared row by row. */
export interface DeadLetterFilter {
  /** One that this outbox no longer defines, too. */
  readonly queue?: string | undefined
  readonly reason?: DeadReason | undefined
  /** Failed at this time or later. */
  readonly since?: Date | undefined
  /** Failed before this time. */
  readonly until?: Date | undefined
  readonly key?: string | undefined
  /** A part of the error's text, in any case of letters. Taken as it is: no character has a meaning of its own. */
  readonly search?: string | undefined
}

export interface DeadLetterListOptions extends DeadLetterFilter {
  /** How many at most, from 1 to 1,000. @default 50 */
  readonly limit?: number | undefined
  /** The `next` of the page before. */
  readonly after?: string | undefined
}

export interface ReplayOptions {
  /** Who replays it, for the message's history. At most 255 bytes. */
  readonly by: string
  /** The message's generation from now on: code of this one and of newer ones will run it. @default the one it had */
  readonly generation?: number | undefined
  /** @default 0, at once */
  readonly delayMs?: number | undefined
}

/** A filter as statements take it; null: not asked for. */
export interface DeadLetterQuery {
  readonly queue: string | null
  readonly reason: string | null
  readonly sinceMs: number | null
  readonly untilMs: number | null
  readonly key: string | null
  readonly search: string | null
}

export interface DeadLetterPageQuery {
  readonly query: DeadLetterQuery
  readonly limit: number
  readonly after: DeadLetterCursor | null
}

export interface ReplayQuery {
  readonly by: string
  /** null: as it was. */
  readonly generation: number | null
  readonly delayMs: number
}

// The years that Postgres and a Date both have.
const earliestMs = -62_135_596_800_000
const latestMs = Date.UTC(9999, 11, 31)

export const date: Check = (value) => {
  const ms = value instanceof Date ? value.getTime() : Number.NaN
  return ms >= earliestMs && ms <= latestMs ? null : 'to be a valid Date before the year 10000'
}

const reasons = Object.keys({
  max_deliveries: 0,
  retry_terminal: 0,
  rejected: 0,
  terminal_error: 0,
  invalid_body: 0,
} satisfies Record<DeadReason, 0>)

/** One that no message dies of would find nothing, as if all were well. */
const reason: Check = (value) => {
  const problem = oneOf(...reasons)(value)
  const meant = problem === null || typeof value !== 'string' ? undefined : suggest(value, reasons)
  return meant === undefined ? problem : `${problem} (did you mean '${meant}'?)`
}

const longestMs = 36_525 * 86_400_000

export const delay: Check = (value) =>
  typeof value === 'number' && value >= 0 && value <= longestMs
    ? null
    : 'to be a number of milliseconds, from 0 to a hundred years'

// A queue has a code of its own.
const filterShape = {
  queue: anything,
  reason,
  since: date,
  until: date,
  key: name(1024),
  search: name(1024),
} satisfies Shape & Record<keyof DeadLetterFilter, Check>

const listShape = {
  ...filterShape,
  limit: wholeNumber(1, 1_000),
  after: (value) => (typeof value === 'string' ? null : 'to be a string'),
} satisfies Shape & Record<keyof DeadLetterListOptions, Check>

const replayShape = {
  by: name(255),
  generation: wholeNumber(0),
  delayMs: delay,
} satisfies Shape & Record<keyof ReplayOptions, Check>

export function resolveDeadLetterFilter(
  given: DeadLetterFilter = {},
  { shape = filterShape, place = 'the filter of dead letters' }: { shape?: Shape; place?: string } = {},
): DeadLetterQuery {
  assertOptions(given, shape, place)
  const { queue, reason = null, since, until, key = null, search = null } = given
  // Only its form: the dead letters of a queue that was given up must still be found.
  if (queue !== undefined) assertQueue(queue, null)
  assertTimes(since, until)
  const [sinceMs = null, untilMs = null] = [since?.getTime(), until?.getTime()]
  return { queue: queue ?? null, reason, key, search, sinceMs, untilMs }
}

export function assertTimes(since: Date | undefined, until: Date | undefined): void {
  if (since === undefined || until === undefined || since <= until) return
  const sentence = `expected \`since\` not to be after \`until\`, got ${show(since)} and ${show(until)}`
  throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
}

export function resolveDeadLetterPage(given: DeadLetterListOptions = {}): DeadLetterPageQuery {
  const query = resolveDeadLetterFilter(given, { shape: listShape, place: 'the options of list' })
  const { limit = 50, after } = given
  return { query, limit, after: after === undefined ? null : readCursor(after) }
}

/** Refuses a replay that nobody answers for. */
export function resolveReplay(given: ReplayOptions): ReplayQuery {
  if (!isRecord(given)) {
    const sentence = `expected the options of replay to be an object, got ${show(given)}: give { by }`
    throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
  }
  assertOptions(given, replayShape, 'the options of replay')
  const { by, generation = null, delayMs = 0 } = given
  assertValue('OUTBOX_INVALID_OPTION', { label: 'by', check: replayShape.by, value: by })
  return { by, generation, delayMs }
}

export function assertMessageId(id: unknown): asserts id is string {
  const check: Check = (value) => (isUuid(value) ? null : 'to be the UUID of a message')
  assertValue('OUTBOX_INVALID_OPTION', { label: 'id', check, value: id })
}
