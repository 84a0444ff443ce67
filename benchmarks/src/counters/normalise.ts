import { counters } from './counter.ts'
import type { Measurement } from './measurement.ts'

/** A measurement with its figures per message beside the totals they were made of. */
export interface Normalised extends Measurement {
  readonly perMessage: Readonly<Record<string, number | null>>
}

export function normalise(measurement: Measurement): Normalised {
  const figures = counters.map(({ name, figure }) => [name, figure(measurement)])
  return { ...measurement, perMessage: Object.fromEntries(figures) }
}

export type StatementKind = 'insert' | 'claim' | 'delete' | 'block' | 'other'

/**
 * What a statement of ours is for, by its text. The claim is told first, by how it steps over locked rows, and a delete
 * before an insert: burying a dead letter is both, and takes a message away.
 */
export function kindOf(text: string): StatementKind {
  const lower = text.trim().toLowerCase()
  if (lower.includes('skip locked')) return 'claim'
  if (/\bdelete from\b/.test(lower)) return 'delete'
  if (/\binsert into\b/.test(lower)) return 'insert'
  return /^(begin|commit)\b/.test(lower) ? 'block' : 'other'
}

/** One type of WAL record, e.g. `Heap/INSERT`. */
export interface WalOfType {
  readonly type: string
  readonly records: number
  readonly bytes: number
}

// Written by the server on its own account, or by our request to flush; no message causes them.
const foreign = ['Standby/', 'XLOG/', 'LogicalMessage/']

export function walOf(
  types: readonly WalOfType[],
): Pick<Measurement['totals'], 'walRecords' | 'walBytes' | 'commits'> {
  const ours = types.filter(({ type }) => !foreign.some((prefix) => type.startsWith(prefix)))
  const sum = (field: 'records' | 'bytes', of = ours): number =>
    of.reduce((total, row) => total + row[field], 0)
  const commits = ours.filter(({ type }) => type === 'Transaction/COMMIT')
  return { walRecords: sum('records'), walBytes: sum('bytes'), commits: sum('records', commits) }
}
