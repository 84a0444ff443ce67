import type { ClaimedQueue, claimMessages, MessageRow, QueueRow } from '../../sql/claim-messages.ts'
import type { extendLeases, holdsLeases } from '../../sql/extend-leases.ts'
import type { Fence } from '../../sql/fence.ts'
import type { Operation } from './operation.ts'
import { base64Of, jsonOf, type MemoryMessage, microseconds, textOf } from './rows.ts'
import { messageOf, putMessage, snapshotText, type Transaction, xidOf } from './transaction.ts'
import { inLane, isLocked } from './visible.ts'

export interface Claim {
  readonly token: string
  readonly leaseMs: number
}

export const claim: Operation<typeof claimMessages> = ({ tx }, { token, queues }) => {
  const moment = { snapshot: snapshotText(tx), own: String(xidOf(tx)) }
  const told = queues.map((wanted) => queueRow(tx, wanted, moment))
  const picked = queues.flatMap((wanted) => pick(tx, wanted).map((message) => ({ message, wanted })))
  return [
    ...told,
    ...picked.map(({ message, wanted: { leaseMs } }) => lease(tx, message, { token, leaseMs })),
  ]
}

function queueRow(
  tx: Transaction,
  { queue, after, sweep }: ClaimedQueue,
  moment: Pick<QueueRow, 'own' | 'snapshot'>,
): QueueRow {
  const now = tx.startedAt
  const next = first(inLane(tx, { queue, lane: 'due' }, { at: now, seq: Number.POSITIVE_INFINITY }))
  const lowest = sweep
    ? first(inLane(tx, { queue, lane: 'fresh' }, { at: 0, seq: Number(after) }))
    : undefined
  return {
    kind: 'queue',
    queue,
    ...moment,
    top: String(tx.server.seq),
    nextdue: textOf(untilDue(next, now)),
    lowest: textOf(lowest?.seq ?? null),
    now: String(now),
  }
}

function untilDue(next: MemoryMessage | undefined, now: number): number | null {
  const dueAt = next?.dueAt ?? Number.POSITIVE_INFINITY
  return dueAt === Number.POSITIVE_INFINITY ? null : dueAt - now
}

/** What was promised for a time, then what is fresh. */
function pick(tx: Transaction, { queue, room, after, dueFromMs }: ClaimedQueue): readonly MemoryMessage[] {
  const dueFrom = dueFromMs === null ? Number.NEGATIVE_INFINITY : microseconds(dueFromMs)
  const isLater = ({ dueAt }: MemoryMessage): boolean => dueAt !== null && dueAt > tx.startedAt
  const picked: MemoryMessage[] = []
  const take = (messages: Iterable<MemoryMessage>): void => {
    for (const message of messages) {
      if (picked.length >= room || isLater(message)) return
      if (isFree(tx, message)) picked.push(message)
    }
  }
  take(inLane(tx, { queue, lane: 'due' }, { at: dueFrom, seq: 0 }))
  take(inLane(tx, { queue, lane: 'fresh' }, { at: 0, seq: Number(after) }))
  return picked
}

/** Nobody holds it, and nobody is about to. A lease that has ended counts as none. */
export function isFree(tx: Transaction, { seq, leasedUntil }: MemoryMessage): boolean {
  return (leasedUntil === null || leasedUntil < tx.startedAt) && !isLocked(tx, seq)
}

export function lease(tx: Transaction, message: MemoryMessage, { token, leaseMs }: Claim): MessageRow {
  const leased = {
    ...message,
    leaseToken: token,
    leasedUntil: microseconds(tx.startedAt + leaseMs),
    deliveries: message.deliveries + 1,
    timerId: null,
    firedTimerId: message.timerId ?? message.firedTimerId,
  }
  putMessage(tx, leased)
  return messageRow(leased)
}

function messageRow(message: MemoryMessage): MessageRow {
  return {
    kind: 'message',
    queue: message.queue,
    id: message.id,
    seq: String(message.seq),
    key: message.key,
    timer: message.firedTimerId,
    body: base64Of(message.body),
    headers: jsonOf(message.headers),
    attempts: String(message.attempts),
    deliveries: String(message.deliveries),
    created: String(message.createdAt),
    first: textOf(message.firstAttemptAt),
    generation: textOf(message.generation),
    due: textOf(message.dueAt),
  }
}

/** Steps over rows that are locked. */
export const extend: Operation<typeof extendLeases> = ({ tx }, extensions) => {
  const extended = [...heldBy(tx, extensions).values()].filter(({ message }) => !isLocked(tx, message.seq))
  for (const { message, entry } of extended) {
    putMessage(tx, { ...message, leasedUntil: microseconds(tx.startedAt + entry.leaseMs) })
  }
  return extended.map(({ message }) => ({ seq: String(message.seq) }))
}

export const holds: Operation<typeof holdsLeases> = ({ tx }, fences) =>
  [...heldBy(tx, fences).keys()].map((seq) => ({ seq: String(seq) }))

export interface HeldMessage<Entry extends Fence> {
  readonly message: MemoryMessage
  readonly entry: Entry
}

/** The messages whose lease the token proves, by seq: the fence. */
export function heldBy<Entry extends Fence>(
  tx: Transaction,
  entries: readonly Entry[],
): ReadonlyMap<number, HeldMessage<Entry>> {
  const held = new Map<number, HeldMessage<Entry>>()
  for (const entry of entries) {
    const message = messageOf(tx, Number(entry.seq))
    if (message !== undefined && message.leaseToken === entry.token) held.set(message.seq, { message, entry })
  }
  return held
}

function first<T>(items: Iterable<T>): T | undefined {
  for (const item of items) return item
  return undefined
}
