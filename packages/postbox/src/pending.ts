import { type BodyRules, decodeStored, type StoredBody } from './core/body.ts'
import { contentTypeHeader, correlationIdHeader } from './core/headers.ts'
import type { PendingMessage } from './core/message.ts'
import { bytesFrom, dateFrom, headersFrom, numberFrom } from './sql/columns.ts'
import type { PendingRow } from './sql/peek-pending.ts'

/** A waiting row as `pending` shows it. Bytes that cannot be decoded are shown raw: one bad row must not hide the others. */
export function pendingMessage(rules: BodyRules, row: PendingRow): PendingMessage {
  const headers = headersFrom(row.headers)
  const raw = bytesFrom(row.body)
  return {
    id: row.id,
    seq: row.seq,
    queue: row.queue,
    key: row.key,
    timerId: row.timer,
    body: decodedOrUndefined(rules, row.queue, {
      bytes: raw,
      contentType: headers[contentTypeHeader] ?? null,
    }),
    headers,
    correlationId: headers[correlationIdHeader] ?? row.id,
    attempts: Number(row.attempts),
    deliveries: Number(row.deliveries),
    createdAt: dateFrom(row.created),
    dueAt: row.due === null ? null : dateFrom(row.due),
    inFlight: row.leased === 'true',
    generation: numberFrom(row.generation),
    raw,
  }
}

function decodedOrUndefined(rules: BodyRules, queue: string, stored: StoredBody): unknown {
  try {
    return decodeStored(rules, queue, stored)
  } catch {
    return undefined
  }
}
