import type { Measurement, Totals } from './measurement.ts'

const nothing: Totals = {
  insertStatements: 0,
  claimStatements: 0,
  deleteStatements: 0,
  blockStatements: 0,
  otherStatements: 0,
  commits: 0,
  rowsInserted: 0,
  rowsUpdated: 0,
  hotUpdates: 0,
  rowsDeleted: 0,
  deadRows: 0,
  notifications: 0,
  walRecords: 0,
  walBytes: 0,
}

/** A hundred messages published one by one, for tests; `changes` says what is unusual about them. */
export function publishing(changes: Partial<Totals>): Measurement {
  const usual = { insertStatements: 100, rowsInserted: 100, walRecords: 400, walBytes: 32_000 }
  return { workload: 'publish', messages: 100, totals: { ...nothing, ...usual, ...changes } }
}

/** A hundred messages claimed in place and deleted in one go. */
export function consuming(changes: Partial<Totals>): Measurement {
  const statements = { claimStatements: 2, deleteStatements: 1 }
  const rows = { rowsUpdated: 100, hotUpdates: 100, rowsDeleted: 100, deadRows: 110 }
  const wal = { walRecords: 300, walBytes: 23_000 }
  return {
    workload: 'consume',
    messages: 100,
    totals: { ...nothing, ...statements, ...rows, ...wal, ...changes },
  }
}
