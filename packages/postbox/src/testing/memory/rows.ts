import type { DeadLetterCursor } from '../../core/dead-letter-cursor.ts'
import type { Headers } from '../../core/headers.ts'
import type { OperationKind } from '../../core/operations.ts'
import { byteLength } from '../../core/text.ts'

interface MemoryRow {
  readonly id: string
  readonly queue: string
  readonly key: string | null
  readonly timerId: string | null
  readonly body: Uint8Array
  readonly headers: Headers | null
  readonly attempts: number
  readonly deliveries: number
  readonly createdAt: number
  readonly firstAttemptAt: number | null
  readonly lastAttemptAt: number | null
  readonly generation: number | null
  readonly failureHistory: unknown
}

/**
 * A row of the outbox table, by the same rules as in Postgres: never changed, only replaced by another. Times are milliseconds since 1970,
 * in whole microseconds; `Infinity` is due never.
 */
export interface MemoryMessage extends MemoryRow {
  readonly seq: number
  /** The name of a timer that was claimed; it is free for others. */
  readonly firedTimerId: string | null
  /** In an ordered queue: the key that it will have when it is due, that it is dead and holds its key, and who died before it. */
  readonly laterKey: string | null
  readonly parkedAt: number | null
  readonly afterDead: string | null
  readonly dueAt: number | null
  readonly leaseToken: string | null
  readonly leasedUntil: number | null
  readonly failedAt: number | null
  readonly failureReason: string | null
  readonly lastError: string | null
}

/** A row of the table of dead letters. */
export interface MemoryDeadLetter extends MemoryRow {
  readonly deadSeq: number
  readonly originalSeq: number
  readonly failedAt: number
  readonly failureReason: string
  readonly lastError: string | null
}

/** A row of the table of operations. */
export interface MemoryOperation {
  readonly id: string
  readonly kind: OperationKind
  readonly by: string
  readonly filter: Readonly<Record<string, unknown>>
  readonly settings: Readonly<Record<string, unknown>>
  readonly startedAt: number
  readonly updatedAt: number
  readonly finishedAt: number | null
  readonly changed: number
  readonly conflicts: number
  readonly lastDueAt: number | null
  readonly place: DeadLetterCursor | null
  /** The last dead letter there was when it began: on a clock that stands still, time does not tell what came after. */
  readonly lastDeadSeq: number
}

/** A row of the table of queues. */
export interface MemoryQueue {
  readonly pausedAt: number | null
  readonly pausedBy: string | null
  readonly resumedAt: number | null
  readonly resumedBy: string | null
}

/** A row of the table of delivered messages. */
export interface MemoryDelivered extends Omit<MemoryRow, 'firstAttemptAt' | 'lastAttemptAt'> {
  readonly deliveredSeq: number
  readonly originalSeq: number
  readonly deliveredAt: number
}

/** What nothing has happened to yet. */
export const unlived = {
  firedTimerId: null,
  laterKey: null,
  parkedAt: null,
  afterDead: null,
  attempts: 0,
  deliveries: 0,
  firstAttemptAt: null,
  lastAttemptAt: null,
  leaseToken: null,
  leasedUntil: null,
  failedAt: null,
  failureReason: null,
  lastError: null,
} as const

/** A row that may be given away: nothing that is done to it reaches the table. */
export function copyOf<Row extends Pick<MemoryRow, 'body' | 'failureHistory'>>(row: Row): Row {
  return { ...row, body: row.body.slice(), failureHistory: structuredClone(row.failureHistory) }
}

/** Headers as jsonb keeps them: a copy that cannot be changed, names ordered by length, then by bytes. */
export function storedHeaders(headers: Headers | null): Headers | null {
  if (headers === null) return null
  const entries = Object.entries(headers).sort(([a], [b]) => byteLength(a) - byteLength(b) || byBytes(a, b))
  return Object.freeze(Object.fromEntries(entries))
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** A time as Postgres keeps it. */
export function microseconds(ms: number): number {
  return Math.round(ms * 1_000) / 1_000
}

// What statements return is text, as it is from Postgres.

export function textOf(value: number | null): string | null {
  return value === null ? null : String(value)
}

export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

export function jsonOf(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value)
}
