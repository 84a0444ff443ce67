import { OutboxError } from './errors.ts'
import { show } from './show.ts'
import { assertOptions, assertValue, type Check, isRecord, type Shape, wholeNumber } from './validate.ts'

export interface PurgeOptions {
  /** Only what is older than this, by the database's clock. Zero: all of it. */
  readonly olderThanMs: number
  /** Aborted: it ends after the batch under way, and says how many are gone by then. */
  readonly signal?: AbortSignal | undefined
}

export interface Purged {
  readonly purged: number
}

/** A hundred years: what is before the first year that Postgres knows would be an error of its own. */
const longestMs = 36_525 * 86_400_000

export const purgeShape = {
  olderThanMs: wholeNumber(0, longestMs),
  signal: (value) => (value instanceof AbortSignal ? null : 'to be an AbortSignal'),
} satisfies Shape & Record<keyof PurgeOptions, Check>

/** `others`: options beside these. Refuses a purge that does not say how old: nobody deletes everything by leaving an option out. */
export function resolvePurge(given: PurgeOptions, others: Shape = {}): PurgeOptions {
  if (!isRecord(given)) {
    const sentence = `expected the options of purge to be an object, got ${show(given)}: give { olderThanMs }`
    throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
  }
  assertOptions(given, { ...purgeShape, ...others }, 'the options of purge')
  const { olderThanMs, signal } = given
  assertValue('OUTBOX_INVALID_OPTION', {
    label: 'olderThanMs',
    check: purgeShape.olderThanMs,
    value: olderThanMs,
  })
  return { olderThanMs, signal }
}
