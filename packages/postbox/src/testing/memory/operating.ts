import type { Batch, BatchRow } from '../../sql/batch-of-operation.ts'
import type { forgetOperation } from '../../sql/forget-operation.ts'
import type { listOperations } from '../../sql/list-operations.ts'
import type { lockOperation } from '../../sql/lock-operation.ts'
import type { startOperation } from '../../sql/start-operation.ts'
import { type Letter, micros, oldestOf } from './dead-letters.ts'
import type { Operation, Work } from './operation.ts'
import { jsonOf, type MemoryOperation, textOf } from './rows.ts'
import { putOperation, type Transaction } from './transaction.ts'
import { allOperations } from './visible.ts'

/** As a row begins. */
export const untouched = {
  ...{ finishedAt: null, changed: 0, conflicts: 0, lastDueAt: null, place: null },
  lastDeadSeq: 0,
} as const

export const start: Operation<typeof startOperation> = ({ tx }, given) => {
  const { startedAt } = tx
  // As jsonb: nothing that is done to what was given reaches the table.
  const [filter, settings] = [structuredClone(given.filter), structuredClone(given.settings)]
  const times = { startedAt, updatedAt: startedAt, lastDeadSeq: tx.server.deadSeq }
  putOperation(tx, given.id, { ...given, ...untouched, ...times, filter, settings })
  return [{ id: given.id }]
}

export const lock: Operation<typeof lockOperation> = ({ tx }, { id, kind }) => {
  const operation = operationOf(tx, id)
  if (operation?.kind !== kind) return []
  putOperation(tx, id, operation)
  return [
    {
      filter: JSON.stringify(operation.filter),
      settings: JSON.stringify(operation.settings),
      // What failed in this very moment had failed, too: the clock may stand still.
      started: String(micros(operation.startedAt) + 1),
      place: jsonOf(operation.place),
      ...progressOf(operation),
    },
  ]
}

export const forget: Operation<typeof forgetOperation> = ({ tx }, id) => {
  if (operationOf(tx, id)?.changed !== 0) return []
  putOperation(tx, id, null)
  return [{ id }]
}

export const listAll: Operation<typeof listOperations> = ({ tx }, { limit, after }) =>
  allOperations(tx)
    .map((operation) => ({ ...operation, started: micros(operation.startedAt) }))
    .filter(
      ({ started, id }) =>
        after === null ||
        started < Number(after.startedMicros) ||
        (started === Number(after.startedMicros) && id < after.id),
    )
    .sort((a, b) => b.started - a.started || (a.id < b.id ? 1 : -1))
    .slice(0, limit + 1)
    .map((operation) => ({
      id: operation.id,
      kind: operation.kind,
      by: operation.by,
      filter: JSON.stringify(operation.filter),
      settings: JSON.stringify(operation.settings),
      started: String(operation.startedAt),
      micros: String(operation.started),
      updated: String(operation.updatedAt),
      finished: textOf(operation.finishedAt),
      changed: String(operation.changed),
      conflicts: String(operation.conflicts),
    }))

/** The oldest that are left for it, and had failed when it began. */
export function leftFor(tx: Transaction, { operation, stretch, size }: Batch): readonly Letter[] {
  const last = operationOf(tx, operation)?.lastDeadSeq ?? 0
  return oldestOf(tx, stretch)
    .filter(({ place, seq }) => place !== 'moved' || seq <= last)
    .slice(0, size)
}

interface Came {
  readonly changed: number
  readonly conflicts: number
  readonly lastDueAt: number | null
  readonly limit: number | null
}

/** Writes how far the operation came with the letters that were chosen. */
export function advance(
  { tx, at }: Work,
  { operation: id, size }: Batch,
  { chosen, ...came }: Came & { readonly chosen: readonly Letter[] },
): readonly BatchRow[] {
  const before = operationOf(tx, id)
  if (before === undefined || before.finishedAt !== null) return []
  const changed = before.changed + came.changed
  const last = chosen.at(-1)
  const isFinished = chosen.length < size || (came.limit !== null && changed >= came.limit)
  const after: MemoryOperation = {
    ...before,
    changed,
    conflicts: before.conflicts + came.conflicts,
    lastDueAt: later(before.lastDueAt, came.lastDueAt),
    place: last === undefined ? before.place : placeOf(last),
    updatedAt: at,
    finishedAt: isFinished ? at : null,
  }
  putOperation(tx, id, after)
  return [progressOf(after)]
}

function progressOf({ changed, conflicts, finishedAt }: MemoryOperation): BatchRow {
  return { changed: String(changed), conflicts: String(conflicts), finished: String(finishedAt !== null) }
}

function placeOf({ place, seq, row }: Letter): MemoryOperation['place'] {
  return { failedMicros: String(micros(row.failedAt)), place, seq: String(seq) }
}

/** The later of two times, of which there may be none. */
export function later(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b
  return Math.max(a, b)
}

export function operationOf(tx: Transaction, id: string): MemoryOperation | undefined {
  const own = tx.operations.get(id)
  return own === undefined ? tx.server.tables.operations.get(id) : (own ?? undefined)
}
