import { isRecord } from './validate.ts'

/** One life of a message that ended in the dead letters and was replayed. */
export interface FailureCycle {
  /** Runs that failed. */
  readonly attempts: number
  readonly deliveries: number
  readonly firstAttemptAt: Date | null
  readonly lastAttemptAt: Date | null
  readonly failedAt: Date | null
  readonly reason: string
  readonly error: string | null
  readonly replayedAt: Date | null
  readonly replayedBy: string
  readonly generationBefore: number | null
  readonly generationAfter: number | null
  /** The operation that replayed it among others (`replayAll`); null: it was replayed by itself. */
  readonly operation: string | null
}

/** The cycles before this one, the newest last. The oldest are dropped when there are too many, and counted. */
export interface FailureHistory {
  readonly dropped: number
  readonly cycles: readonly FailureCycle[]
}

/** How many cycles a message remembers. An error is at most some kilobytes, and this many of them ride along with every claim. */
export const historyLimit = 20

/** jsonb as text → history. One that somebody else has written must not hide its message: what is not ours reads as nothing. */
export function historyFrom(text: string | null): FailureHistory {
  const stored: unknown = text === null ? null : JSON.parse(text)
  const { dropped, cycles } = isRecord(stored) ? stored : {}
  return Object.freeze({
    dropped: numberOf(dropped) ?? 0,
    cycles: Object.freeze(Array.isArray(cycles) ? cycles.filter(isRecord).map(cycleFrom) : []),
  })
}

function cycleFrom(stored: Readonly<Record<string, unknown>>): FailureCycle {
  return Object.freeze({
    attempts: numberOf(stored['attempts']) ?? 0,
    deliveries: numberOf(stored['deliveries']) ?? 0,
    firstAttemptAt: dateOf(stored['firstAttemptAt']),
    lastAttemptAt: dateOf(stored['lastAttemptAt']),
    failedAt: dateOf(stored['failedAt']),
    reason: textOf(stored['reason']) ?? '',
    error: textOf(stored['error']),
    replayedAt: dateOf(stored['replayedAt']),
    replayedBy: textOf(stored['replayedBy']) ?? '',
    generationBefore: numberOf(stored['generationBefore']),
    generationAfter: numberOf(stored['generationAfter']),
    operation: textOf(stored['operation']),
  })
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function dateOf(value: unknown): Date | null {
  const date = new Date(textOf(value) ?? Number.NaN)
  return Number.isNaN(date.getTime()) ? null : date
}
