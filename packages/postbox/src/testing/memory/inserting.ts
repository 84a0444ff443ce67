import type { Draft } from '../../core/message.ts'
import { unreachable } from '../../core/unreachable.ts'
import type { cancelTimer } from '../../sql/cancel-timer.ts'
import type { insertMessage } from '../../sql/insert-message.ts'
import type { insertMessages } from '../../sql/insert-messages.ts'
import type { markTransaction, readMark } from '../../sql/mark-transaction.ts'
import type { peekPending } from '../../sql/peek-pending.ts'
import type { Arrival } from './memory-database.ts'
import type { Operation, Work } from './operation.ts'
import { lockKeys } from './ordering.ts'
import { base64Of, jsonOf, type MemoryMessage, microseconds, storedHeaders, textOf } from './rows.ts'
import { timerName } from './tables.ts'
import { awaitTimer, putMessage, removeMessage, type Transaction } from './transaction.ts'
import { allMessages, timerOf } from './visible.ts'

export const insert: Operation<typeof insertMessage> & Operation<typeof insertMessages> = (
  work,
  { drafts, mark },
) => {
  if (!isMarked(work.tx, mark)) return []
  awaitTimers(work.tx, drafts)
  lockKeys(work.tx, drafts)
  return drafts
    .map((draft) => insertDraft(work, draft, 'publish'))
    .filter((message) => message !== null)
    .map(({ id, seq }) => ({ id, seq: String(seq) }))
}

/** Before anything is written: whoever waits begins again. */
export function awaitTimers(tx: Transaction, drafts: readonly Draft[]): void {
  for (const { queue, timerId } of drafts) if (timerId !== null) awaitTimer(tx, timerName(queue, timerId))
}

/** null: a waiting timer was kept. Its seq is used up all the same. */
export function insertDraft(work: Work, draft: Draft, arrival: Arrival): MemoryMessage | null {
  const message = messageFrom(work, draft)
  const { queue, timerId, conflict } = draft
  const waiting = timerId === null || conflict === 'none' ? undefined : timerOf(work.tx, queue, timerId)
  if (waiting === undefined) return arrive(work, message, arrival)
  if (conflict === 'keep') return null
  // Its seq lies below every cursor by now.
  const dueAt = message.dueAt ?? work.at
  return arrive(work, { ...message, seq: waiting.seq, dueAt }, arrival)
}

/** Writes a message that is new to whoever sees it, and tells of it when it is due within ten seconds. */
export function arrive({ tx, at }: Work, message: MemoryMessage, arrival: Arrival): MemoryMessage {
  putMessage(tx, message)
  tx.arrivals.set(message.seq, arrival)
  if (message.dueAt === null || message.dueAt < at + 10_000) tx.toldQueues.add(message.queue)
  return message
}

// Member by member: made of spread objects, it took publishing twice as long.
function messageFrom(work: Work, draft: Draft): MemoryMessage {
  const dueAt = dueAtOf(work, draft)
  const isLater = draft.isOrdered === true && dueAt !== null
  return {
    seq: ++work.tx.server.seq,
    id: draft.id.toLowerCase(),
    queue: draft.queue,
    key: isLater ? null : draft.key,
    timerId: draft.timerId,
    firedTimerId: null,
    laterKey: isLater ? draft.key : null,
    parkedAt: null,
    afterDead: null,
    // Not by `slice`: that of a Buffer shares its bytes.
    body: new Uint8Array(draft.body),
    headers: storedHeaders(draft.headers),
    attempts: 0,
    deliveries: 0,
    createdAt: work.tx.startedAt,
    dueAt,
    firstAttemptAt: null,
    lastAttemptAt: null,
    leaseToken: null,
    leasedUntil: null,
    generation: draft.generation,
    failedAt: null,
    failureReason: null,
    lastError: null,
    failureHistory: null,
  }
}

/** A timer of an ordered queue that may replace another takes its place when it is due, be it now. */
function dueAtOf(work: Work, { schedule, isOrdered, conflict }: Draft): number | null {
  const dueAt = scheduledAt(work, schedule)
  return isOrdered === true && conflict === 'replace' ? (dueAt ?? work.at) : dueAt
}

function scheduledAt({ at }: Work, schedule: Draft['schedule']): number | null {
  switch (schedule.kind) {
    case 'now':
      return null
    case 'after':
      return microseconds(at + schedule.delayMs)
    case 'at':
      return schedule.epochMs > at ? microseconds(schedule.epochMs) : null
    default:
      return unreachable(schedule)
  }
}

/** No row that has a name is leased here: there is no process of an earlier version, which would leave it its name. */
export const cancel: Operation<typeof cancelTimer> = ({ tx }, { queue, timerId, mark }) => {
  if (!isMarked(tx, mark)) return []
  const waiting = timerOf(tx, queue, timerId)
  if (waiting === undefined) return []
  removeMessage(tx, waiting.seq)
  return [{ seq: String(waiting.seq) }]
}

export const peek: Operation<typeof peekPending> = ({ tx, at }, { queue, limit, mark }) => {
  if (!isMarked(tx, mark)) return []
  const isMeant = (message: MemoryMessage): boolean =>
    message.failedAt === null && (queue === null || message.queue === queue)
  return allMessages(tx)
    .filter(isMeant)
    .slice(0, limit)
    .map((message) => ({
      id: message.id,
      seq: String(message.seq),
      queue: message.queue,
      key: message.key ?? message.laterKey,
      timer: message.timerId ?? message.firedTimerId,
      body: base64Of(message.body),
      headers: jsonOf(message.headers),
      attempts: String(message.attempts),
      deliveries: String(message.deliveries),
      created: String(message.createdAt),
      due: textOf(message.dueAt),
      leased: String(message.leasedUntil !== null && message.leasedUntil > at),
      generation: textOf(message.generation),
    }))
}

/** On its own the transaction ends with the statement, and the mark with it. */
export const setMark: Operation<typeof markTransaction> = ({ tx, values: [mark] }) => {
  tx.mark = mark
  return [{ mark: String(mark) }]
}

export const isMarkThere: Operation<typeof readMark> = ({ tx, values: [mark] }) => [
  { inside: String(tx.mark === mark) },
]

export function isMarked(tx: Transaction, mark: unknown): boolean {
  return mark === null || tx.mark === mark
}
