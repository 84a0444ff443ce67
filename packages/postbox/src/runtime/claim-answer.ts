import { compareSeq } from '../core/batching.ts'
import type { Lease } from '../core/lease.ts'
import type { ClaimedQueue, ClaimRow, MessageRow, QueueRow } from '../sql/claim-messages.ts'
import { bytesFrom, dateFrom, headersFrom, numberFrom } from '../sql/columns.ts'
import { type Held, heldOf } from './held.ts'

/** What a claim found in a queue. */
export interface Found {
  readonly queue: string
  /** What is due first, then what is fresh, each oldest first. */
  readonly held: readonly Held[]
  /** As many as it might take: there may be more. */
  readonly isFull: boolean
  /** When the next message is due, on the local clock; null: none waits. */
  readonly nextDueAt: number | null
}

/** What came back, with what was asked for, and when. */
export interface Answer {
  readonly rows: readonly ClaimRow[]
  readonly asked: readonly ClaimedQueue[]
  readonly token: string
  readonly isSweep: boolean
  readonly sentAt: number
  readonly receivedAt: number
}

/** One queue's part of an answer. */
export interface QueueFound {
  readonly row: QueueRow
  readonly fresh: readonly MessageRow[]
  readonly due: readonly MessageRow[]
  readonly isFull: boolean
  readonly leaseMs: number
}

export function queuesOf({ rows, asked }: Pick<Answer, 'rows' | 'asked'>): readonly QueueFound[] {
  const messages = new Map<string, MessageRow[]>(asked.map(({ queue }) => [queue, []]))
  for (const row of rows.filter(isMessage)) messages.get(row.queue)?.push(row)
  const demands = new Map(asked.map((demand) => [demand.queue, demand]))
  return rows
    .filter((row) => row.kind === 'queue')
    .map((row) => {
      const own = messages.get(row.queue) ?? []
      const { room = 0, leaseMs = 0 } = demands.get(row.queue) ?? {}
      const fresh = own.filter(({ due }) => due === null).sort(bySeq)
      const due = own.filter((message) => message.due !== null).sort(byDue)
      return { row, fresh, due, isFull: own.length >= room, leaseMs }
    })
}

export function isMessage(row: ClaimRow): row is MessageRow {
  return row.kind === 'message'
}

export function foundOf(found: QueueFound, { token, sentAt, receivedAt }: Answer): Found {
  const { row, fresh, due, isFull, leaseMs } = found
  const claim = { token, claimedAt: dateFrom(row.now) }
  return {
    queue: row.queue,
    held: [...due, ...fresh].map((message) => heldOf(leaseOf(message, claim), leaseMs, sentAt)),
    isFull,
    nextDueAt: row.nextdue === null ? null : receivedAt + Number(row.nextdue),
  }
}

// Member by member, here and wherever something is made for each message: spreading an object made deliveries a fifth slower.
export function leaseOf(row: MessageRow, { token, claimedAt }: Pick<Lease, 'token' | 'claimedAt'>): Lease {
  return {
    token,
    id: row.id,
    seq: row.seq,
    queue: row.queue,
    key: row.key,
    timerId: row.timer,
    body: bytesFrom(row.body),
    headers: headersFrom(row.headers),
    attempt: Number(row.attempts) + 1,
    deliveries: Number(row.deliveries),
    createdAt: dateFrom(row.created),
    firstAttemptAt: row.first === null ? null : dateFrom(row.first),
    claimedAt,
    generation: numberFrom(row.generation),
  }
}

// An update by ctid returns rows in physical order, which is not the order of seq once pages are reused.
function bySeq(a: MessageRow, b: MessageRow): number {
  return compareSeq(a.seq, b.seq)
}

function byDue(a: MessageRow, b: MessageRow): number {
  return Number(a.due) - Number(b.due) || bySeq(a, b)
}
