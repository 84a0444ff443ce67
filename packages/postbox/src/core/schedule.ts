import { longestMs } from './duration.ts'
import { OutboxError } from './errors.ts'
import { show } from './show.ts'

/** An absolute time: a Date, or anything with `epochMilliseconds` (Temporal.Instant, Temporal.ZonedDateTime). */
export type Instant = Date | { readonly epochMilliseconds: number }

/**
 * When a message becomes due. A delay stays a delay until the statement runs, so that the database's clock anchors it
 * and a skewed publisher cannot move it.
 */
export type Schedule =
  | { readonly kind: 'now' }
  | { readonly kind: 'after'; readonly delayMs: number }
  | { readonly kind: 'at'; readonly epochMs: number }

/** The year 1: Postgres' calendar begins in 4714 BC, and to_timestamp fails before it. */
const earliestEpochMs = -62_135_596_800_000
const latestEpochMs = Date.UTC(9999, 11, 31)

export function resolveSchedule(delayMs: unknown, at: unknown): Schedule {
  if (delayMs !== undefined && at !== undefined) {
    throw invalid(`expected either \`delayMs\` or \`at\`, got both: ${show(delayMs)} and ${show(at)}`)
  }
  if (delayMs !== undefined) return afterDelay(delayMs)
  if (at !== undefined) return atInstant(at)
  return { kind: 'now' }
}

function afterDelay(delayMs: unknown): Schedule {
  if (typeof delayMs !== 'number' || !(delayMs >= 0 && delayMs <= longestMs)) {
    throw invalid(
      `expected \`delayMs\` to be a number from 0 to ${longestMs} (100 years), got ${show(delayMs)}`,
    )
  }
  return delayMs === 0 ? { kind: 'now' } : { kind: 'after', delayMs }
}

function atInstant(at: unknown): Schedule {
  const epochMs =
    at instanceof Date ? at.getTime() : (at as { epochMilliseconds?: unknown } | null)?.epochMilliseconds
  if (typeof epochMs !== 'number' || !(epochMs >= earliestEpochMs && epochMs <= latestEpochMs)) {
    throw invalid(
      `expected \`at\` to be a valid Date or Temporal instant before the year 10000, got ${show(at)}`,
    )
  }
  return { kind: 'at', epochMs }
}

function invalid(sentence: string): OutboxError {
  return new OutboxError('OUTBOX_INVALID_TIME', sentence)
}
