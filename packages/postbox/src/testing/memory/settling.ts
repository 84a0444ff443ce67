import type { Draft } from '../../core/message.ts'
import type { DeliveredStorage } from '../../core/storage-modes.ts'
import type { deleteAcked } from '../../sql/delete-acked.ts'
import type { deleteWithFollowOns } from '../../sql/delete-with-follow-ons.ts'
import type { Fence } from '../../sql/fence.ts'
import type { releaseLeases } from '../../sql/release-leases.ts'
import type { rescheduleRetried } from '../../sql/reschedule-retried.ts'
import type { snoozeMessages } from '../../sql/snooze-messages.ts'
import type { PutBack } from '../../sql/take-names.ts'
import { type HeldMessage, heldBy } from './claiming.ts'
import { keep } from './delivering.ts'
import { awaitTimers, insertDraft } from './inserting.ts'
import type { Operation, Work } from './operation.ts'
import { lockKeys } from './ordering.ts'
import { type MemoryMessage, microseconds } from './rows.ts'
import { timerName } from './tables.ts'
import { putMessage, removeMessage, type Transaction } from './transaction.ts'
import { timerOf } from './visible.ts'

export const acknowledge: Operation<typeof deleteAcked> = (work, { fences, delivered }) => {
  const held = [...heldBy(work.tx, fences).values()]
  end(work, held, delivered)
  return held.map(({ message }) => ({ seq: String(message.seq) }))
}

export const acknowledgeWithFollowOns: Operation<typeof deleteWithFollowOns> = (work, input) => {
  const { settled, delivered = 'delete' } = input
  const held = [...heldBy(work.tx, settled).values()]
  const drafts = chosenOf(held.flatMap(({ entry }) => entry.followOns))
  awaitTimers(work.tx, drafts)
  lockKeys(work.tx, drafts)
  end(work, held, delivered)
  for (const draft of drafts) insertDraft(work, draft, 'follow-on')
  return held.map(({ message }) => ({ seq: String(message.seq) }))
}

/** Removes them, or moves them to the delivered messages, in the order of their seqs. */
function end(work: Work, held: readonly HeldMessage<Fence>[], delivered: DeliveredStorage): void {
  for (const { message } of held) removeMessage(work.tx, message.seq)
  if (delivered === 'table')
    for (const { message } of held.toSorted((a, b) => a.message.seq - b.message.seq)) keep(work, message)
}

/** Of several timers of one name one: the last that replaces, else the first. In the order of the drafts. */
function chosenOf(drafts: readonly Draft[]): readonly Draft[] {
  const chosen = new Map<string, Draft>()
  for (const draft of drafts) {
    if (draft.timerId === null) continue
    const name = timerName(draft.queue, draft.timerId)
    if (draft.conflict === 'replace' || !chosen.has(name)) chosen.set(name, draft)
  }
  return drafts.filter(
    (draft) => draft.timerId === null || chosen.get(timerName(draft.queue, draft.timerId)) === draft,
  )
}

export const reschedule: Operation<typeof rescheduleRetried> = ({ tx }, given) =>
  putBack(tx, given, ({ message, entry }) => ({
    ...message,
    dueAt: microseconds(tx.startedAt + entry.delayMs),
    attempts: message.attempts + 1,
    firstAttemptAt: message.firstAttemptAt ?? tx.startedAt,
    lastAttemptAt: tx.startedAt,
    lastError: entry.error,
  }))

export const snooze: Operation<typeof snoozeMessages> = ({ tx }, given) =>
  putBack(tx, given, ({ message, entry }) => ({
    ...message,
    dueAt: microseconds(tx.startedAt + entry.delayMs),
    deliveries: entry.deliveriesBefore,
  }))

export const giveBack: Operation<typeof releaseLeases> = ({ tx }, given) =>
  putBack(tx, given, ({ message, entry }) => {
    tx.toldQueues.add(message.queue)
    return { ...message, deliveries: entry.deliveriesBefore }
  })

/** All names are looked up before the first is taken: two that want the same one is an error, as it is in Postgres. */
function putBack<Entry extends Fence>(
  tx: Transaction,
  { batch, takeNames }: PutBack<Entry>,
  waiting: (held: HeldMessage<Entry>) => MemoryMessage,
): readonly { readonly seq: string }[] {
  const freed = [...heldBy(tx, batch).values()].map((held) => ({
    ...waiting(held),
    ...(takeNames ? namesAfter(tx, held.message) : null),
    leaseToken: null,
    leasedUntil: null,
  }))
  for (const message of freed) putMessage(tx, message)
  return freed.map(({ seq }) => ({ seq: String(seq) }))
}

/** The name is taken back unless another timer has it; then it is kept for the next try. */
function namesAfter(
  tx: Transaction,
  { queue, firedTimerId }: MemoryMessage,
): Pick<MemoryMessage, 'timerId' | 'firedTimerId'> {
  const isTaken = firedTimerId !== null && timerOf(tx, queue, firedTimerId) !== undefined
  return isTaken ? { timerId: null, firedTimerId } : { timerId: firedTimerId, firedTimerId: null }
}
