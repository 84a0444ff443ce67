import { type PauseInput, type pauseQueue, pausesChanged, type resumeQueue } from '../../sql/pause-queue.ts'
import type { readPauses } from '../../sql/read-pauses.ts'
import type { Operation } from './operation.ts'
import { type MemoryMessage, type MemoryQueue, textOf } from './rows.ts'
import { Blocked, type Transaction, xidOf } from './transaction.ts'
import { allMessages } from './visible.ts'

const never: MemoryQueue = { pausedAt: null, pausedBy: null, resumedAt: null, resumedBy: null }

export const pause: Operation<typeof pauseQueue> = ({ tx, at }, input) => {
  const before = queueOf(tx, input.queue)
  // Locked even where it stays as it is.
  if (before.pausedAt !== null) return write(tx, input.queue, before)
  write(tx, input.queue, { ...before, pausedAt: at, pausedBy: input.by })
  return tell(tx, input)
}

/** What has come meanwhile, and would have been delivered at once, is delivered where publishers wait for that. */
export const resume: Operation<typeof resumeQueue> = ({ tx, at }, input) => {
  const before = queueOf(tx, input.queue)
  if (before.pausedAt === null) return []
  write(tx, input.queue, { ...never, resumedAt: at, resumedBy: input.by })
  const isReady = ({ dueAt, deliveries, attempts }: MemoryMessage): boolean =>
    (dueAt ?? 0) <= at || deliveries + attempts === 0
  for (const message of allMessages(tx)) {
    if (message.queue === input.queue && message.failedAt === null && isReady(message))
      tx.arrivals.set(message.seq, 'resume')
  }
  return tell(tx, input)
}

export const readAll: Operation<typeof readPauses> = ({ tx }, { queues, unordered }) =>
  queues.map((queue) => ({
    queue,
    pause: unordered.includes(queue) ? unorderedTextOf(tx, queue) : pauseTextOf(tx, queue),
  }))

export function isPaused(tx: Transaction, queue: string): boolean {
  return queueOf(tx, queue).pausedAt !== null
}

/** Nothing of it may be claimed without regard to its keys. */
export function isHeld(tx: Transaction, queue: string): boolean {
  return isPaused(tx, queue) || tx.server.ordered.has(queue)
}

/** As pauseText makes it. */
export function pauseTextOf(tx: Transaction, queue: string): string | null {
  const { pausedAt, pausedBy, resumedAt, resumedBy } = queueOf(tx, queue)
  if (pausedAt !== null) return JSON.stringify({ paused: true, at: textOf(pausedAt), by: pausedBy })
  if (resumedAt === null) return null
  return JSON.stringify({ paused: false, at: textOf(resumedAt), by: resumedBy })
}

/** For whoever has the queue without order. */
export function unorderedTextOf(tx: Transaction, queue: string): string | null {
  if (!tx.server.ordered.has(queue)) return pauseTextOf(tx, queue)
  return JSON.stringify({ paused: true, at: '0', by: null, mismatch: true })
}

function queueOf(tx: Transaction, queue: string): MemoryQueue {
  return tx.queues.get(queue) ?? tx.server.tables.queues.get(queue) ?? never
}

/** Throws when somebody else has written the row. */
function write(tx: Transaction, queue: string, row: MemoryQueue): readonly never[] {
  const owner = tx.server.locks.queues.get(queue)
  if (owner !== undefined && owner !== tx) throw new Blocked(owner)
  xidOf(tx)
  tx.server.locks.queues.set(queue, tx)
  tx.queues.set(queue, row)
  return []
}

function tell(tx: Transaction, { queue, wake }: PauseInput): readonly { readonly queue: string }[] {
  if (wake !== 'poll') tx.toldQueues.add(pausesChanged)
  return [{ queue }]
}
