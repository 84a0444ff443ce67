import { type DeadLetterCursor, readCursor } from './dead-letter-cursor.ts'
import { OutboxError } from './errors.ts'
import { assertQueue } from './queue-name.ts'
import { resolveSchedule } from './schedule.ts'
import { show } from './show.ts'
import { isUuid } from './uuid.ts'
import {
  anything,
  assertOptions,
  assertValue,
  type Check,
  name,
  type Shape,
  wholeNumber,
} from './validate.ts'

/** Which dead letters; all that is given must hold. Queue and times are looked up, the rest is compared row by row. */
export interface DeadLetterFilter {
  /** One that this outbox no longer defines, too. */
  readonly queue?: string | undefined
  readonly reason?: string | undefined
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
  /** The message's generation from now on. @default the one it had */
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

const date: Check = (value) => {
  const ms = value instanceof Date ? value.getTime() : Number.NaN
  return ms >= earliestMs && ms <= latestMs ? null : 'to be a valid Date before the year 10000'
}

// A queue and a delay have codes of their own.
const filterShape = {
  queue: anything,
  reason: name(255),
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
  delayMs: anything,
} satisfies Shape & Record<keyof ReplayOptions, Check>

export function resolveDeadLetterFilter(
  given: DeadLetterFilter = {},
  { shape = filterShape, place = 'the filter of dead letters' }: { shape?: Shape; place?: string } = {},
): DeadLetterQuery {
  assertOptions(given, shape, place)
  const { queue, reason = null, since, until, key = null, search = null } = given
  // Only its form: the dead letters of a queue that was given up must still be found.
  if (queue !== undefined) assertQueue(queue, null)
  if (since !== undefined && until !== undefined && since > until) {
    const sentence = `expected \`since\` not to be after \`until\`, got ${show(since)} and ${show(until)}`
    throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
  }
  const [sinceMs = null, untilMs = null] = [since?.getTime(), until?.getTime()]
  return { queue: queue ?? null, reason, key, search, sinceMs, untilMs }
}

export function resolveDeadLetterPage(given: DeadLetterListOptions = {}): DeadLetterPageQuery {
  const query = resolveDeadLetterFilter(given, { shape: listShape, place: 'the options of list' })
  const { limit = 50, after } = given
  return { query, limit, after: after === undefined ? null : readCursor(after) }
}

/** Refuses a replay that nobody answers for. */
export function resolveReplay(given: ReplayOptions): ReplayQuery {
  assertOptions(given ?? null, replayShape, 'the options of replay')
  const { by, generation = null, delayMs } = given
  assertValue('OUTBOX_INVALID_OPTION', { label: 'by', check: replayShape.by, value: by })
  const schedule = resolveSchedule(delayMs, undefined)
  return { by, generation, delayMs: schedule.kind === 'after' ? schedule.delayMs : 0 }
}

export function assertMessageId(id: unknown): asserts id is string {
  const check: Check = (value) => (isUuid(value) ? null : 'to be the UUID of a message')
  assertValue('OUTBOX_INVALID_OPTION', { label: 'id', check, value: id })
}
