import type { CountedQueue, countMessages } from '../../sql/count-messages.ts'
import type { Operation } from './operation.ts'
import { pauseTextOf } from './pausing.ts'
import { type MemoryMessage, textOf } from './rows.ts'
import type { Transaction } from './transaction.ts'
import { allMessages, inLane } from './visible.ts'

export const countQueues: Operation<typeof countMessages> = ({ tx }, { queues, bound }) =>
  [...queues].sort().map((queue) => counted(tx, queue, bound))

function counted(tx: Transaction, queue: string, bound: number): CountedQueue {
  const now = tx.startedAt
  const upTo = (messages: Iterable<MemoryMessage>): readonly MemoryMessage[] => firstOf(messages, bound)
  const fresh = upTo(inLane(tx, { queue, lane: 'fresh' }, { at: 0, seq: 0 }))
  const dueLane = { queue, lane: 'due' } as const
  const due = upTo(inLane(tx, dueLane, { at: Number.NEGATIVE_INFINITY, seq: 0 })).filter(
    ({ dueAt }) => dueAt !== null && dueAt <= now,
  )
  const later = upTo(inLane(tx, dueLane, { at: now, seq: Number.POSITIVE_INFINITY })).filter(
    ({ dueAt }) => dueAt !== Number.POSITIVE_INFINITY,
  )
  const parked = upTo(
    allMessages(tx).filter((message) => message.queue === queue && message.parkedAt !== null),
  )
  const isFree = ({ leasedUntil }: MemoryMessage): boolean => leasedUntil === null || leasedUntil < now
  const ready = [...fresh, ...due].filter(isFree)
  const readySince = ready.map(({ dueAt, createdAt }) => dueAt ?? createdAt)
  return {
    queue,
    ready: String(ready.length),
    leased: String(fresh.length + due.length - ready.length),
    scheduled: String(later.length),
    parked: String(parked.length),
    manynow: String(fresh.length === bound || due.length === bound),
    manylater: String(later.length === bound),
    manyparked: String(parked.length === bound),
    pause: pauseTextOf(tx, queue),
    oldest: textOf(readySince.length === 0 ? null : now - readySince.reduce((a, b) => Math.min(a, b))),
  }
}

function firstOf<T>(items: Iterable<T>, limit: number): readonly T[] {
  const found: T[] = []
  for (const item of items) {
    if (found.length >= limit) break
    found.push(item)
  }
  return found
}
