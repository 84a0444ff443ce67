import { compareSeq } from '../core/batching.ts'
import type { Lease } from '../core/lease.ts'
import type { ClaimedQueue, ClaimRow, MessageRow, QueueRow } from '../sql/claim-messages.ts'
import { bytesFrom, dateFrom, headersFrom, numberFrom } from '../sql/columns.ts'
import { type Pause, pauseFrom } from '../sql/pause-state.ts'
import { type Held, heldOf } from './held.ts'

/** What a claim found in a queue. */
export interface Found {
  readonly queue: string
  /** What is due first, then what is fresh, each oldest first. */
  readonly held: readonly Held[]
  /** As many as it might take: there may be more. */
  readonly isFull: boolean
  /** Of an ordered queue, which is swept in several goes. Absent: a sweep that is not full has looked at everything. */
  readonly round?: RoundState
  /** When the next message is due, on the local clock; null: none waits. */
  readonly nextDueAt: number | null
  /** How it stands with the queue: of one that is paused nothing is claimed. null: nobody has ever paused it. */
  readonly pause: Pause | null
}

/** What looks so far mean for a round over all of an ordered queue. */
export interface RoundState {
  /** Everything has been looked at, with this look: the next begins a round. */
  readonly isOver: boolean
  /** Everything has been looked at, by now, and nothing was there to be claimed, nor has been since. */
  readonly isEmpty: boolean
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
  readonly pause: Pause | null
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
      return { row, fresh, due, isFull: own.length >= room, leaseMs, pause: pauseFrom(row.pause) }
    })
}

function isMessage(row: ClaimRow): row is MessageRow {
  return row.kind === 'message'
}

export function foundOf(found: QueueFound, answer: Answer): Found {
  const { row, fresh, due, isFull, leaseMs, pause } = found
  const { token, sentAt } = answer
  const claim = { token, claimedAt: dateFrom(row.now) }
  return {
    queue: row.queue,
    held: [...due, ...fresh].map((message) => heldOf(leaseOf(message, claim), leaseMs, sentAt)),
    isFull,
    nextDueAt: localTime(sentAt, row.nextdue),
    pause,
  }
}

/**
 * When so many milliseconds of the database's clock have passed. Counted from when the claim was sent, for its clock was read when the claim began: a claim sent
 * then arrives when it is due. Counted from the answer, every alarm would be late by a whole claim, which is what most of the lateness of a timer was.
 */
export function localTime(sentAt: number, ms: string | null): number | null {
  return ms === null ? null : sentAt + Number(ms)
}

type Claimed = Pick<Lease, 'token' | 'claimedAt' | 'isOrdered' | 'afterDead'>

// Member by member, here and wherever something is made for each message: spreading an object made deliveries a fifth slower.
export function leaseOf(
  row: MessageRow,
  { token, claimedAt, isOrdered = false, afterDead = null }: Claimed,
): Lease {
  return {
    token,
    id: row.id,
    seq: row.seq,
    queue: row.queue,
    key: row.key,
    isOrdered,
    afterDead,
    timerId: row.timer,
    body: bytesFrom(row.body),
    headers: headersFrom(row.headers),
    attempt: Number(row.attempts) + 1,
    deliveries: deliveriesOf(row),
    createdAt: dateFrom(row.created),
    firstAttemptAt: row.first === null ? null : dateFrom(row.first),
    claimedAt,
    generation: numberFrom(row.generation),
  }
}

/** This one included: that of a suspect is not counted yet. */
export function deliveriesOf({ deliveries, suspect }: MessageRow): number {
  return Number(deliveries) + (suspect === 'true' ? 1 : 0)
}

// An update by ctid returns rows in physical order, which is not the order of seq once pages are reused.
export function bySeq(a: MessageRow, b: MessageRow): number {
  return compareSeq(a.seq, b.seq)
}

export function byDue(a: MessageRow, b: MessageRow): number {
  return Number(a.due) - Number(b.due) || bySeq(a, b)
}
