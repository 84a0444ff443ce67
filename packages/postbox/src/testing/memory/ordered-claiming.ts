import { mayRun } from '../../core/generation.ts'
import {
  type claimInOrder,
  longestRun,
  type OrderedQueue,
  type OrderedQueueRow,
} from '../../sql/claim-in-order.ts'
import type { joinKeys } from '../../sql/join-keys.ts'
import type { registerQueues } from '../../sql/register-queues.ts'
import { type IsOurs, isFree, lease, nextDueAt } from './claiming.ts'
import type { Operation } from './operation.ts'
import { inOrder, keyName } from './ordering.ts'
import { isPaused, pauseTextOf } from './pausing.ts'
import { type MemoryMessage, textOf } from './rows.ts'
import { putMessage, removeMessage, snapshotText, type Transaction, takeKeys, xidOf } from './transaction.ts'
import { allMessages, inLane } from './visible.ts'

export const register: Operation<typeof registerQueues> = ({ tx }, { ordered, others }) => {
  for (const queue of ordered) tx.server.ordered.add(queue)
  return others.filter((queue) => tx.server.ordered.has(queue)).map((name) => ({ name }))
}

/** All keys are looked at, whatever is asked for: there are not many in a test. */
export const claimOrdered: Operation<typeof claimInOrder> = (
  { tx },
  { token, queues, generation = null },
) => {
  const moment = { snapshot: snapshotText(tx), own: String(xidOf(tx)) }
  const isOurs: IsOurs = (message) => mayRun(generation, message)
  const told = queues.map((wanted) => ({ ...queueRow(tx, wanted, isOurs), ...moment }))
  const picked = queues.flatMap((wanted) => pick(tx, wanted, isOurs).map((message) => ({ message, wanted })))
  return [
    ...told,
    ...picked.map(({ message, wanted: { leaseMs } }) => ({
      ...lease(tx, message, { token, leaseMs }),
      afterdead: message.afterDead,
    })),
  ]
}

function queueRow(
  tx: Transaction,
  { queue }: OrderedQueue,
  isOurs: IsOurs,
): Omit<OrderedQueueRow, 'own' | 'snapshot'> {
  const now = tx.startedAt
  const dueAt = nextDueAt(
    inLane(tx, { queue, lane: 'due' }, { at: now, seq: Number.POSITIVE_INFINITY }),
    isOurs,
  )
  return {
    kind: 'queue',
    queue,
    top: String(tx.server.seq),
    nextdue: textOf(dueAt === null ? null : dueAt - now),
    now: String(now),
    reached: null,
    more: 'false',
    lastkey: null,
    joining: String(Math.min(1, joining(tx, queue).filter((message) => isFree(tx, message)).length)),
    leftkeys: null,
    leftover: 'false',
    pause: pauseTextOf(tx, queue),
  }
}

/** The first of each key, what is due before what is fresh; then what is right behind them, a little of each or much of one. */
function pick(tx: Transaction, { queue, room }: OrderedQueue, isOurs: IsOurs): readonly MemoryMessage[] {
  if (isPaused(tx, queue)) return []
  const isReady = (message: MemoryMessage): boolean =>
    message.failedAt === null &&
    message.laterKey === null &&
    (message.dueAt === null || message.dueAt <= tx.startedAt) &&
    isFree(tx, message) &&
    isOurs(message)
  const firsts = allMessages(tx)
    .filter((message) => message.queue === queue && isReady(message))
    .filter((message) => message.key === null || inOrder(tx, queue, message.key)[0]?.seq === message.seq)
    .sort(
      (a, b) =>
        (a.dueAt ?? Number.POSITIVE_INFINITY) - (b.dueAt ?? Number.POSITIVE_INFINITY) || a.seq - b.seq,
    )
    .slice(0, room)
  const share = Math.min(longestRun, Math.floor(room / Math.max(1, firsts.length)))
  const followers = firsts.flatMap((first) => {
    if (first.dueAt !== null) return []
    const behind = inOrder(tx, queue, first.key).filter(({ seq }) => seq > first.seq)
    const stop = behind.findIndex((message) => message.dueAt !== null || !isReady(message))
    return behind.slice(0, Math.min(stop === -1 ? behind.length : stop, Math.max(0, share - 1)))
  })
  return [...firsts, ...followers]
}

function joining(tx: Transaction, queue: string): readonly MemoryMessage[] {
  return allMessages(tx)
    .filter(
      (message) =>
        message.queue === queue &&
        message.laterKey !== null &&
        message.failedAt === null &&
        message.dueAt !== null &&
        message.dueAt <= tx.startedAt,
    )
    .sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || a.seq - b.seq)
}

export const joinThem: Operation<typeof joinKeys> = ({ tx }, { queues }) => {
  const isOpen = (message: MemoryMessage): boolean => {
    const owner = tx.server.locks.keys.get(keyName(message.queue, message.laterKey))
    return (owner === undefined || owner === tx) && isFree(tx, message)
  }
  const due = queues.flatMap((queue) => joining(tx, queue)).filter(isOpen)
  takeKeys(
    tx,
    due.map(({ queue, laterKey }) => keyName(queue, laterKey)),
  )
  for (const message of due) {
    removeMessage(tx, message.seq)
    const { timerId } = message
    putMessage(tx, {
      ...message,
      seq: ++tx.server.seq,
      timerId,
      key: message.laterKey,
      laterKey: null,
      dueAt: null,
    })
  }
  return [{ joined: due.length }]
}
