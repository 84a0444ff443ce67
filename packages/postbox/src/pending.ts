import type { BodyRules } from './core/body.ts'
import type { PendingMessage } from './core/message.ts'
import { dateFrom } from './sql/columns.ts'
import type { PendingRow } from './sql/peek-pending.ts'
import { storedMessage } from './stored-message.ts'

/** A waiting row as `pending` shows it. */
export function pendingMessage(rules: BodyRules, row: PendingRow): PendingMessage {
  return {
    ...storedMessage(rules, row),
    seq: row.seq,
    dueAt: row.due === null ? null : dateFrom(row.due),
    inFlight: row.leased === 'true',
  }
}
