import type { ReplaySettings } from './bulk-options.ts'
import type { DeadLetterCursor } from './dead-letter-cursor.ts'
import type { DeadLetterFilter, DeadLetterQuery } from './dead-letter-options.ts'
import type { DeadReason } from './settlement.ts'
import { isRecord } from './validate.ts'

/** `skip`: a key went on without its first message, which stays dead. */
export type OperationKind = 'replay' | 'discard' | 'skip'

/** What somebody did to dead letters, and how far it came. */
export interface DeadLetterOperation {
  readonly id: string
  /** A later version may write others. */
  readonly kind: OperationKind
  /** Who began it. */
  readonly by: string
  /** As it was given; `id` when one was discarded by its id, and with its queue and key when it was skipped. */
  readonly filter: DeadLetterFilter & { readonly id?: string }
  /** As they were given. */
  readonly settings: {
    readonly perSecond?: number
    readonly limit?: number
    readonly generation?: number
    readonly delayMs?: number
  }
  readonly startedAt: Date
  readonly updatedAt: Date
  /** null: it was cancelled, it broke off, or it is at work. */
  readonly finishedAt: Date | null
  /** How many were replayed, discarded or skipped. */
  readonly changed: number
  /** How many stayed dead because a timer of their name waited. */
  readonly conflicts: number
}

type Stored = Readonly<Record<string, unknown>>

/** What is kept of a filter: only what it says, times written out, so that it can be read in psql. */
export function storedFilter({ sinceMs, untilMs, ...query }: DeadLetterQuery): Stored {
  return given({ ...query, since: isoOf(sinceMs), until: isoOf(untilMs) })
}

export function storedSettings({ delayMs, ...settings }: ReplaySettings): Stored {
  return given({ ...settings, delayMs: delayMs === 0 ? null : delayMs })
}

/** jsonb as text → the filter as statements take it. */
export function queryFrom(text: string): DeadLetterQuery {
  const stored = recordFrom(text)
  return {
    queue: textOf(stored['queue']),
    reason: textOf(stored['reason']),
    key: textOf(stored['key']),
    search: textOf(stored['search']),
    sinceMs: msOf(stored['since']),
    untilMs: msOf(stored['until']),
  }
}

export function settingsFrom(text: string): ReplaySettings {
  const stored = recordFrom(text)
  return {
    perSecond: numberOf(stored['perSecond']),
    limit: numberOf(stored['limit']),
    generation: numberOf(stored['generation']),
    delayMs: numberOf(stored['delayMs']) ?? 0,
  }
}

/** jsonb as text → the same as people look at it. */
export function filterFrom(text: string): DeadLetterOperation['filter'] {
  const { sinceMs, untilMs, reason, ...others } = queryFrom(text)
  return given({
    id: textOf(recordFrom(text)['id']),
    ...others,
    reason: reason as DeadReason | null,
    since: sinceMs === null ? null : new Date(sinceMs),
    until: untilMs === null ? null : new Date(untilMs),
  })
}

export function givenSettingsFrom(text: string): DeadLetterOperation['settings'] {
  return given(storedSettings(settingsFrom(text)))
}

/** jsonb as text → where the operation has come to. */
export function placeFrom(text: string | null): DeadLetterCursor | null {
  return text === null ? null : JSON.parse(text)
}

/** Where a batch meets somebody's lock on a timer's name it is tried again with fewer rows: one row alone waits for him, and holds nobody up. */
export const mostRowsOfBatch = 500
const stepOfSize = 8

export function narrower(size: number): number {
  return Math.max(1, Math.floor(size / stepOfSize))
}

export function wider(size: number): number {
  return Math.min(mostRowsOfBatch, size * stepOfSize)
}

type Given<T> = { readonly [Name in keyof T]?: NonNullable<T[Name]> }

function given<T extends object>(members: T): Given<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null)) as Given<T>
}

function recordFrom(text: string): Stored {
  const stored: unknown = JSON.parse(text)
  return isRecord(stored) ? stored : {}
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' ? value : null
}

function isoOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

function msOf(value: unknown): number | null {
  const ms = Date.parse(textOf(value) ?? '')
  return Number.isNaN(ms) ? null : ms
}
