import type { BodyRules, StoredBody } from './core/body-rules.ts'
import { contentTypeHeader, correlationIdHeader } from './core/headers.ts'
import type { PendingMessage } from './core/message.ts'
import { decodeStored } from './core/read-body.ts'
import { bytesFrom, dateFrom, headersFrom, numberFrom } from './sql/columns.ts'
import type { PendingRow } from './sql/peek-pending.ts'

/** What a waiting message and a dead one show alike. */
export type StoredMessage = Omit<PendingMessage, 'seq' | 'dueAt' | 'inFlight'>

export type StoredRow = Omit<PendingRow, 'seq' | 'due' | 'leased'>

/** A stored row as people look at it. Bytes that cannot be decoded are shown raw: one bad row must not hide the others. */
export function storedMessage(rules: BodyRules, row: StoredRow): StoredMessage {
  const headers = headersFrom(row.headers)
  const raw = bytesFrom(row.body)
  const contentType = headers[contentTypeHeader] ?? null
  return {
    id: row.id,
    queue: row.queue,
    key: row.key,
    timerId: row.timer,
    body: decodedOrUndefined(rules, row.queue, { bytes: raw, contentType }),
    headers,
    correlationId: headers[correlationIdHeader] ?? row.id,
    attempts: Number(row.attempts),
    deliveries: Number(row.deliveries),
    createdAt: dateFrom(row.created),
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
