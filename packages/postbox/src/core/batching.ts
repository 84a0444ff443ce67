import type { Draft } from './message.ts'
import type { Settlement } from './settlement.ts'
import type { DeadLetterStorage } from './storage-modes.ts'

/** A settlement that waits to be written. */
export interface Entry {
  readonly settlement: Settlement
  /** How many of its kind one statement may write. */
  readonly maxBatch: number
  /** How often it was refused and put off: by where it is to be kept, or because a timer of its name is being armed. */
  readonly refusals: number
  /** Another of its key waits for it in this process. @default false */
  readonly isLink?: boolean | undefined
}

/** A message whose burial was refused so often stays where it is, and is delivered no more. */
export const mostRefusals = 3

const longestDelayMs = 60_000

/**
 * How long something that was refused waits for its next try. With a way out, three tries within three seconds, and then that way at once;
 * without, ever later, until it works: nothing else may become of it.
 */
export function refusedDelayMs(refusals: number, hasWayOut: boolean): number {
  if (hasWayOut && refusals >= mostRefusals) return 0
  return Math.min(1_000 * 2 ** (refusals - 1), longestDelayMs)
}

/** What one statement can write. `follow`: deletes that publish; `park`: burials that hold their key; `quarantine`: burials that the dead letters refuse. */
export type BatchKind = Settlement['write'] | 'follow' | 'park' | 'quarantine'

/** Entries of one kind that one statement writes, in the order of seq. */
export interface SettlementBatch<E extends Entry = Entry> {
  readonly kind: BatchKind
  /** They take the names of their timers back, or arm some: somebody may be about to take these names. */
  readonly isNamed: boolean
  /** Others of their keys wait for them: they need not wait for the disk. Absent: not. */
  readonly isQuick?: boolean
  readonly entries: readonly E[]
}

/** What one statement publishes is one JSON text: far below what a text may hold, and what a connection should be kept busy with. */
const mostFollowOnBytes = 16_000_000

// Deletes first: they are what most neighbours wait for. Last, what may be refused.
const order: readonly BatchKind[] = [
  'delete',
  'release',
  'snooze',
  'reschedule',
  'follow',
  'bury',
  'park',
  'quarantine',
]

/**
 * What a flush writes, statement by statement. Sorted by seq: two statements that lock the same rows in opposite order deadlocked in
 * 35 of 60 trials.
 */
export function batchesOf<E extends Entry>(
  entries: readonly E[],
  deadLetters: DeadLetterStorage = 'table',
): readonly SettlementBatch<E>[] {
  const groups: Group<E>[] = []
  for (const entry of entries) groupOf(groups, entry, kindOf(entry, deadLetters)).alike.push(entry)
  return groups
    .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))
    .flatMap(({ kind, isNamed, isQuick, alike }) =>
      portions(alike.sort(bySeq)).map((entries) => ({
        kind,
        isNamed,
        ...(isQuick ? { isQuick } : {}),
        entries,
      })),
    )
}

/** Entries that one statement can write, if they are not too many. */
interface Group<E extends Entry> {
  readonly kind: BatchKind
  readonly isNamed: boolean
  readonly isQuick: boolean
  readonly maxBatch: number
  readonly alike: E[]
}

/** There are few: looked through, and not looked up by a name that would be put together for each entry. */
function groupOf<E extends Entry>(groups: Group<E>[], entry: E, kind: BatchKind): Group<E> {
  const { maxBatch } = entry
  const isNamed = isNamedAs(kind, entry)
  const isQuick = kind === 'delete' && entry.isLink === true
  for (const group of groups)
    if (
      group.kind === kind &&
      group.isNamed === isNamed &&
      group.isQuick === isQuick &&
      group.maxBatch === maxBatch
    )
      return group
  const made = { kind, isNamed, isQuick, maxBatch, alike: [] }
  groups.push(made)
  return made
}

/** Two halves of a batch that failed, to find the one row that it failed at. */
export function halves<E extends Entry>(batch: SettlementBatch<E>): readonly SettlementBatch<E>[] {
  return chunked(batch.entries, Math.ceil(batch.entries.length / 2)).map((entries) => ({ ...batch, entries }))
}

function kindOf({ settlement, refusals }: Entry, deadLetters: DeadLetterStorage): BatchKind {
  if (settlement.write === 'delete') return settlement.followOns.length > 0 ? 'follow' : 'delete'
  if (settlement.write === 'bury' && settlement.parks === true) return 'park'
  // What is buried where it lies would be quarantined by the very statement that was refused.
  const mayGoElsewhere = settlement.write === 'bury' && deadLetters !== 'in-place'
  return mayGoElsewhere && refusals >= mostRefusals ? 'quarantine' : settlement.write
}

/** It goes back to waiting with the name of its timer, or arms one: somebody may be about to take that name. */
function isNamedAs(kind: BatchKind, { settlement }: Entry): boolean {
  if (kind === 'follow') return settlement.write === 'delete' && settlement.followOns.some(isContended)
  const goesBack = kind === 'release' || kind === 'snooze' || kind === 'reschedule'
  return goesBack && settlement.lease.timerId !== null
}

/** Somebody may be about to take its timer's name, or have its key. */
function isContended({ timerId, isOrdered }: Draft): boolean {
  return timerId !== null || isOrdered === true
}

/**
 * As many as one statement may write, and no seq twice: of a message that we lost and claimed again only one lease still holds, and the
 * answer tells seqs.
 */
function portions<E extends Entry>(alike: readonly E[]): readonly (readonly E[])[] {
  const all: { readonly entries: E[]; bytes: number }[] = []
  for (const entry of alike) {
    const bytes = followOnBytes(entry.settlement)
    const last = all.at(-1)
    const fits =
      last !== undefined &&
      last.entries.length < entry.maxBatch &&
      last.bytes + bytes <= mostFollowOnBytes &&
      last.entries.at(-1)?.settlement.lease.seq !== entry.settlement.lease.seq
    if (fits) last.entries.push(entry)
    else all.push({ entries: [entry], bytes: 0 })
    const portion = all.at(-1)
    if (portion !== undefined) portion.bytes += bytes
  }
  return all.map(({ entries }) => entries)
}

function followOnBytes(settlement: Settlement): number {
  if (settlement.write !== 'delete') return 0
  return settlement.followOns.reduce((sum, { body }) => sum + body.byteLength, 0)
}

function chunked<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  const chunks = Math.ceil(items.length / size)
  return Array.from({ length: chunks }, (_, index) => items.slice(index * size, (index + 1) * size))
}

function bySeq(a: Entry, b: Entry): number {
  return compareSeq(a.settlement.lease.seq, b.settlement.lease.seq)
}

/** seq is a bigint as text: by length, then by digits. */
export function compareSeq(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : a > b ? 1 : 0
}
