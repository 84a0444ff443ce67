import type { Settlement } from './settlement.ts'

/** Settlements of one kind that one statement writes, in the order of seq. */
export interface SettlementBatch<S extends Settlement = Settlement> {
  readonly write: S['write']
  readonly settlements: readonly S[]
}

/** A settlement and how many others of its kind one statement may write with it. */
export interface Waiting {
  readonly settlement: Settlement
  readonly maxBatch: number
}

// Deletes first: they are what most neighbours wait for, and what a burial may fail at must not hold them up.
const order: readonly Settlement['write'][] = ['delete', 'release', 'reschedule', 'bury']

/**
 * What a flush writes, statement by statement. Sorted by seq: two statements that lock the same rows in opposite order deadlocked in
 * 35 of 60 trials.
 */
export function batchesOf(waiting: readonly Waiting[]): readonly SettlementBatch[] {
  const limits = [...new Set(waiting.map(({ maxBatch }) => maxBatch))]
  return order.flatMap((write) =>
    limits.flatMap((limit) => {
      const alike = waiting.filter(
        ({ settlement, maxBatch }) => settlement.write === write && maxBatch === limit,
      )
      return chunked(alike.map(({ settlement }) => settlement).sort(bySeq), limit).map((settlements) => ({
        write,
        settlements,
      }))
    }),
  )
}

/** Two halves of a batch that failed, to find the one row that it failed at. */
export function halves(batch: SettlementBatch): readonly SettlementBatch[] {
  return chunked(batch.settlements, Math.ceil(batch.settlements.length / 2)).map((settlements) => ({
    write: batch.write,
    settlements,
  }))
}

function chunked<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  const chunks = Math.ceil(items.length / size)
  return Array.from({ length: chunks }, (_, index) => items.slice(index * size, (index + 1) * size))
}

function bySeq(a: Settlement, b: Settlement): number {
  return compareSeq(a.lease.seq, b.lease.seq)
}

/** seq is a bigint as text: by length, then by digits. */
export function compareSeq(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length
  return a < b ? -1 : a > b ? 1 : 0
}
