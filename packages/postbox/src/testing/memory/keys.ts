import type { KeyListQuery } from '../../core/key-options.ts'
import { type KeyRow, type listKeys, mostWaiting } from '../../sql/list-keys.ts'
import type { KeyOfQueue } from '../../sql/parked-keys.ts'
import type { resumeKey } from '../../sql/resume-key.ts'
import type { skipKey } from '../../sql/skip-key.ts'
import { micros, quarantinedLetter } from './dead-letters.ts'
import { arrive } from './inserting.ts'
import { untouched } from './operating.ts'
import type { Operation, Work } from './operation.ts'
import { inOrder } from './ordering.ts'
import { setFree } from './replaying.ts'
import { type MemoryMessage, textOf } from './rows.ts'
import { awaitMessage, messageOf, putMessage, putOperation, type Transaction } from './transaction.ts'
import { allMessages, timerOf } from './visible.ts'

/** All rows that are due later are looked at, whatever their number: there are not many in a test. */
export const listBlocked: Operation<typeof listKeys> = ({ tx }, page) =>
  [...parkedOf(tx, page), ...retryingOf(tx, page)].slice(0, page.limit + 1)

function parkedOf(tx: Transaction, { queue, state, after }: KeyListQuery): readonly KeyRow[] {
  if (state === 'retrying' || after?.state === 'retrying') return []
  const from = Buffer.from(after?.key ?? '')
  return allMessages(tx)
    .filter((message) => message.queue === queue && message.parkedAt !== null)
    .map((message) => ({ message, bytes: Buffer.from(message.key ?? '') }))
    .filter(({ bytes }) => Buffer.compare(bytes, from) > 0)
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes))
    .map(({ message }) => keyRow(tx, 'parked', message))
}

function retryingOf(tx: Transaction, { queue, state, after }: KeyListQuery): readonly KeyRow[] {
  if (state === 'parked' || !tx.server.ordered.has(queue)) return []
  const [fromDue, fromSeq] =
    after?.state === 'retrying' ? [Number(after.dueMicros), Number(after.seq)] : [0, 0]
  return allMessages(tx)
    .filter((message) => message.queue === queue && message.key !== null && message.failedAt === null)
    .map((message) => ({ message, due: message.dueAt ?? 0 }))
    .filter(({ due }) => due > tx.startedAt)
    .filter(
      ({ due, message: { seq } }) => micros(due) > fromDue || (micros(due) === fromDue && seq > fromSeq),
    )
    .sort((a, b) => a.due - b.due || a.message.seq - b.message.seq)
    .map(({ message }) => keyRow(tx, 'retrying', message))
}

function keyRow(tx: Transaction, state: KeyRow['state'], message: MemoryMessage): KeyRow {
  const isParked = state === 'parked'
  const due = isParked ? null : message.dueAt
  const behind = inOrder(tx, message.queue, message.key).filter(({ seq }) => seq > message.seq)
  return {
    kind: 'key',
    state,
    key: message.key,
    seq: String(message.seq),
    id: message.id,
    attempts: String(message.attempts),
    reason: message.failureReason,
    error: message.lastError,
    since: textOf(isParked ? message.parkedAt : message.firstAttemptAt),
    due: textOf(due),
    micros: due === null ? null : String(micros(due)),
    waiting: String(Math.min(behind.length, mostWaiting + 1)),
  }
}

/** What the statement saw when it began: it goes by that after a wait, too. */
interface Seen {
  readonly seq: number
  readonly isNameTaken: boolean
}

/** The parked first message of a key; who has it is waited for. Undefined: there is none, or none any more. */
function takeHead(work: Work, { queue, key }: KeyOfQueue): { seen: Seen; head: MemoryMessage } | undefined {
  const { tx } = work
  const seen = (work.seen as Seen | null) ?? look(tx, inOrder(tx, queue, key)[0])
  if (seen === null) return undefined
  awaitMessage(tx, seen.seq, seen)
  const head = messageOf(tx, seen.seq)
  return head === undefined || head.parkedAt === null ? undefined : { seen, head }
}

function look(tx: Transaction, head: MemoryMessage | undefined): Seen | null {
  if (head === undefined || head.parkedAt === null) return null
  const timer = head.timerId ?? head.firedTimerId
  return { seq: head.seq, isNameTaken: timer !== null && timerOf(tx, head.queue, timer) !== undefined }
}

export const resume: Operation<typeof resumeKey> = (work, input) => {
  const taken = takeHead(work, input)
  const letter = taken === undefined ? undefined : quarantinedLetter(taken.head)[0]
  if (taken === undefined || letter === undefined) return []
  setFree(work, {
    ...{ seen: taken.seen, taken: letter, lands: 'in_place' },
    input: { ...input, generation: null, delayMs: 0 },
  })
  return [{ id: taken.head.id }]
}

export const skip: Operation<typeof skipKey> = (work, input) => {
  const { tx } = work
  const taken = takeHead(work, input)
  if (taken === undefined) return []
  const { head, seen } = taken
  const next = nextOf(tx, head, seen)
  putMessage(tx, { ...head, parkedAt: null })
  if (next !== undefined) goOnWith(work, next, head.id)
  const { operation: id, by, queue, key } = input
  const { startedAt } = tx
  putOperation(tx, id, {
    ...untouched,
    ...{ id, kind: 'skip', by, filter: { queue, key, id: head.id }, settings: {} },
    ...{ startedAt, updatedAt: startedAt, finishedAt: startedAt, changed: 1 },
  })
  return [{ id: head.id }]
}

/** The message that comes behind one of its key. Who has it is waited for, before anything is written. */
export function nextOf(tx: Transaction, head: MemoryMessage, seen: unknown): MemoryMessage | undefined {
  const next = inOrder(tx, head.queue, head.key).find(({ seq }) => seq > head.seq)
  if (next !== undefined) awaitMessage(tx, next.seq, seen)
  return next
}

/** It is the first of its key now, and its seq lies below every cursor. */
export function goOnWith(work: Work, next: MemoryMessage, afterDead: string): void {
  arrive(work, { ...next, afterDead, dueAt: next.dueAt ?? work.at }, 'replay')
}
