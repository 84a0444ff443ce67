import { largestSeq } from './dead-letter-cursor.ts'
import { assertTimes, date } from './dead-letter-options.ts'
import { OutboxError } from './errors.ts'
import { assertQueue } from './queue-name.ts'
import { anything, assertOptions, type Check, expected, name, type Shape, wholeNumber } from './validate.ts'

/** Which delivered messages; all that is given must hold. Times are looked up, the rest is compared row by row. */
export interface DeliveredListOptions {
  /** One that this outbox no longer defines, too. */
  readonly queue?: string | undefined
  readonly key?: string | undefined
  /** Delivered at this time or later. */
  readonly since?: Date | undefined
  /** Delivered before this time. */
  readonly until?: Date | undefined
  /** How many at most, from 1 to 1,000. @default 50 */
  readonly limit?: number | undefined
  /** The `next` of the page before. */
  readonly after?: string | undefined
}

/** A place in the list of delivered messages, newest first. */
export interface DeliveredCursor {
  /** In microseconds since 1970, as text: the digits that a Date would lose tell two rows apart. */
  readonly deliveredMicros: string
  readonly seq: string
}

/** Options as statements take them; null: not asked for. */
export interface DeliveredPageQuery {
  readonly query: {
    readonly queue: string | null
    readonly key: string | null
    readonly sinceMs: number | null
    readonly untilMs: number | null
  }
  readonly limit: number
  readonly after: DeliveredCursor | null
}

// A queue has a code of its own.
const shape = {
  queue: anything,
  key: name(1024),
  since: date,
  until: date,
  limit: wholeNumber(1, 1_000),
  after: (value) => (typeof value === 'string' ? null : 'to be a string'),
} satisfies Shape & Record<keyof DeliveredListOptions, Check>

export function resolveDeliveredPage(given: DeliveredListOptions = {}): DeliveredPageQuery {
  assertOptions(given, shape, 'the options of list')
  const { queue, key = null, since, until, limit = 50, after } = given
  // Only its form: what a queue delivered before it was given up must still be found.
  if (queue !== undefined) assertQueue(queue, null)
  assertTimes(since, until)
  const [sinceMs = null, untilMs = null] = [since?.getTime(), until?.getTime()]
  return {
    query: { queue: queue ?? null, key, sinceMs, untilMs },
    limit,
    after: after === undefined ? null : readCursor(after),
  }
}

/** What callers keep: opaque to them, fit for a URL. */
export function deliveredCursorText({ deliveredMicros, seq }: DeliveredCursor): string {
  return `${deliveredMicros}-${seq}`
}

const form = /^(-?\d{1,16})-(\d{1,19})$/

function readCursor(given: string): DeliveredCursor {
  const [, deliveredMicros, seq] = form.exec(given) ?? []
  if (deliveredMicros !== undefined && seq !== undefined && BigInt(seq) <= largestSeq)
    return { deliveredMicros, seq }
  throw new OutboxError(
    'OUTBOX_INVALID_OPTION',
    expected('after', 'to be the `next` of a page of delivered messages', given),
  )
}
