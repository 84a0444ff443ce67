import type { Settlement } from './settlement.ts'

/** A settlement that waits to be written. */
export interface Entry {
  readonly settlement: Settlement
  /** How many of its kind one statement may write. */
  readonly maxBatch: number
  /** How often it was refused and put off: by the dead letters, or because a timer of its name is being armed. */
  readonly refusals: number
}

/** A message whose burial was refused so often stays where it is, and is delivered no more. */
export const mostRefusals = 3

/** What one statement can write. `follow`: deletes that publish; `quarantine`: burials that the dead letters refuse. */
export type BatchKind = Settlement['write'] | 'follow' | 'quarantine'

/** Entries of one kind that one statement writes, in the order of seq. */
export interface SettlementBatch<E extends Entry = Entry> {
  readonly kind: BatchKind
  /** They go back to waiting, and take the names of their timers with them. */
  readonly isNamed: boolean
  readonly entries: readonly E[]
}

// Deletes first: they are what most neighbours wait for. Last, what may be refused.
const order: readonly BatchKind[] = [
  'delete',
  'release',
  'snooze',
  'reschedule',
  'follow',
  'bury',
  'quarantine',
]

/**
 * What a flush writes, statement by statement. Sorted by seq: two statements that lock the same rows in opposite order deadlocked in
 * 35 of 60 trials.
 */
export function batchesOf<E extends Entry>(entries: readonly E[]): readonly SettlementBatch<E>[] {
  const groups = new Map<
    string,
    { readonly kind: BatchKind; readonly isNamed: boolean; readonly alike: E[] }
  >()
  for (const entry of entries) {
    const kind = kindOf(entry)
    const isNamed = goesBack(kind) && entry.settlement.lease.timerId !== null
    const name = `${kind} ${isNamed} ${entry.maxBatch}`
    const group = groups.get(name) ?? { kind, isNamed, alike: [] }
    groups.set(name, group)
    group.alike.push(entry)
  }
  return [...groups.values()]
    .sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))
    .flatMap(({ kind, isNamed, alike }) =>
      chunked(alike.sort(bySeq), alike[0]?.maxBatch ?? 1).map((chunk) => ({ kind, isNamed, entries: chunk })),
    )
}

/** Two halves of a batch that failed, to find the one row that it failed at. */
export function halves<E extends Entry>(batch: SettlementBatch<E>): readonly SettlementBatch<E>[] {
  return chunked(batch.entries, Math.ceil(batch.entries.length / 2)).map((entries) => ({ ...batch, entries }))
}

function kindOf({ settlement, refusals }: Entry): BatchKind {
  if (settlement.write === 'delete') return settlement.followOns.length > 0 ? 'follow' : 'delete'
  if (settlement.write === 'bury') return refusals < mostRefusals ? 'bury' : 'quarantine'
  return settlement.write
}

function goesBack(kind: BatchKind): boolean {
  return kind === 'release' || kind === 'snooze' || kind === 'reschedule'
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
