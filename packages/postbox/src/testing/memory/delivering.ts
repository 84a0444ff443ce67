import type { DeliveredPageQuery } from '../../core/delivered-options.ts'
import type { getDelivered } from '../../sql/get-delivered.ts'
import type { DeliveredRow, listDelivered } from '../../sql/list-delivered.ts'
import type { purgeDelivered } from '../../sql/purge-delivered.ts'
import type { Operation, Work } from './operation.ts'
import { base64Of, jsonOf, type MemoryDelivered, type MemoryMessage, textOf } from './rows.ts'
import { putDelivered, type Transaction } from './transaction.ts'
import { allDelivered } from './visible.ts'

/** Keeps a message that was delivered. */
export function keep({ tx, at }: Work, message: MemoryMessage): void {
  const { seq, id, queue, key, body, headers, attempts, deliveries, createdAt, generation } = message
  const deliveredSeq = ++tx.server.deliveredSeq
  putDelivered(tx, deliveredSeq, {
    ...{ deliveredSeq, originalSeq: seq, deliveredAt: at },
    ...{ id, queue, key, body, headers, attempts, deliveries, createdAt, generation },
    timerId: message.timerId ?? message.firedTimerId,
    failureHistory: message.failureHistory,
  })
}

export const listKept: Operation<typeof listDelivered> = ({ tx }, page) =>
  newestFirst(tx)
    .filter(matching(page))
    .slice(0, page.limit + 1)
    .map(rowOf)

export const getKept: Operation<typeof getDelivered> = ({ tx }, id) =>
  newestFirst(tx)
    .filter((row) => row.id === id.toLowerCase())
    .slice(0, 1)
    .map(rowOf)

/** Steps over what somebody else is purging. */
export const purgeKept: Operation<typeof purgeDelivered> = ({ tx, at }, { olderThanMs, limit }) => {
  const { locks } = tx.server
  const old = newestFirst(tx)
    .toReversed()
    .filter(({ deliveredAt }) => deliveredAt <= at - olderThanMs)
    .filter(({ deliveredSeq }) => (locks.delivered.get(deliveredSeq) ?? tx) === tx)
    .slice(0, limit)
  for (const { deliveredSeq } of old) putDelivered(tx, deliveredSeq, null)
  return [{ purged: String(old.length) }]
}

function newestFirst(tx: Transaction): MemoryDelivered[] {
  return allDelivered(tx).sort((a, b) => b.deliveredAt - a.deliveredAt || b.deliveredSeq - a.deliveredSeq)
}

function matching({ query, after }: DeliveredPageQuery): (row: MemoryDelivered) => boolean {
  const { queue, key, sinceMs, untilMs } = query
  return (row) =>
    (queue === null || row.queue === queue) &&
    (key === null || row.key === key) &&
    (sinceMs === null || row.deliveredAt >= sinceMs) &&
    (untilMs === null || row.deliveredAt < untilMs) &&
    (after === null || isBehind(row, after))
}

function isBehind(row: MemoryDelivered, after: NonNullable<DeliveredPageQuery['after']>): boolean {
  const [own, left] = [micros(row.deliveredAt), Number(after.deliveredMicros)]
  return own < left || (own === left && row.deliveredSeq < Number(after.seq))
}

function micros(ms: number): number {
  return Math.round(ms * 1_000)
}

function rowOf(row: MemoryDelivered): DeliveredRow {
  return {
    seq: String(row.deliveredSeq),
    id: row.id,
    queue: row.queue,
    key: row.key,
    timer: row.timerId,
    body: base64Of(row.body),
    headers: jsonOf(row.headers),
    attempts: String(row.attempts),
    deliveries: String(row.deliveries),
    created: String(row.createdAt),
    generation: textOf(row.generation),
    history: jsonOf(row.failureHistory),
    delivered: String(row.deliveredAt),
    micros: String(micros(row.deliveredAt)),
  }
}
