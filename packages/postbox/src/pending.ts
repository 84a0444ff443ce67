import { type BodyRules, decodeStored } from './core/body.ts'
import { contentTypeHeader, correlationIdHeader } from './core/headers.ts'
import type { PendingMessage } from './core/message.ts'
import { dateFrom, headersFrom, numberFrom } from './sql/columns.ts'
import type { PendingRow } from './sql/peek-pending.ts'

/** A waiting row as `pending` shows it. Bytes that cannot be decoded are shown raw: one bad row must not hide the others. */
export function pendingMessage(rules: BodyRules, row: PendingRow): PendingMessage {
  const headers = headersFrom(row.headers)
  return {
    id: row.id,
    seq: row.seq,
    queue: row.queue,
    key: row.key,
    timerId: row.timer,
    body: decodedOrUndefined(rules, row, headers[contentTypeHeader] ?? null),
    headers,
    correlationId: headers[correlationIdHeader] ?? row.id,
    attempts: row.attempts,
    deliveries: row.deliveries,
    createdAt: dateFrom(row.created),
    dueAt: row.due === null ? null : dateFrom(row.due),
    inFlight: row.leased,
    generation: numberFrom(row.generation),
    raw: row.body,
  }
}

function decodedOrUndefined(rules: BodyRules, row: PendingRow, contentType: string | null): unknown {
  try {
    return decodeStored(rules, row.queue, { bytes: row.body, contentType })
  } catch {
    return undefined
  }
}
