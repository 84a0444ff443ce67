import { mayRun } from '../../core/generation.ts'
import type { claimFresh } from '../../sql/claim-fresh.ts'
import {
  type ClaimedQueue,
  type claimMessages,
  type MessageRow,
  type QueueRow,
  scheduledLooks,
} from '../../sql/claim-messages.ts'
import type { countDelivery } from '../../sql/count-delivery.ts'
import type { extendLeases, holdsLeases } from '../../sql/extend-leases.ts'
import type { Fence } from '../../sql/fence.ts'
import type { Operation } from './operation.ts'
import { isHeld, unorderedTextOf } from './pausing.ts'
import { base64Of, jsonOf, type MemoryMessage, microseconds, textOf } from './rows.ts'
import { messageOf, putMessage, snapshotText, type Transaction, xidOf } from './transaction.ts'
import { inLane, isLocked } from './visible.ts'

export interface Claim {
  readonly token: string
  readonly leaseMs: number
}

export const claim: Operation<typeof claimMessages> = ({ tx }, { token, queues, generation = null }) => {
  const moment = { snapshot: snapshotText(tx), own: String(xidOf(tx)) }
  const isOurs: IsOurs = (message) => mayRun(generation, message)
  const told = queues.map((wanted) => ({ ...queueRow(tx, wanted, isOurs), ...moment }))
  const picked = queues.flatMap((wanted) => pick(tx, wanted, isOurs).map((message) => ({ message, wanted })))
  return [
    ...told,
    ...picked.map(({ message, wanted: { leaseMs } }) => lease(tx, message, { token, leaseMs })),
  ]
}

export const claimFreshly: Operation<typeof claimFresh> = ({ tx }, input) => {
  const { token, queue, room, leaseMs, after, generation = null } = input
  const fresh = isHeld(tx, queue) ? [] : inLane(tx, { queue, lane: 'fresh' }, { at: 0, seq: Number(after) })
  const picked: MemoryMessage[] = []
  for (const message of fresh) {
    if (picked.length >= room) break
    const isNew = message.leaseToken === null && message.deliveries <= message.attempts
    if (isNew && !isLocked(tx, message.seq) && mayRun(generation, message)) picked.push(message)
  }
  return picked.map((message) => ({ ...lease(tx, message, { token, leaseMs }), now: String(tx.startedAt) }))
}

/** Not of a newer generation than whoever claims. */
export type IsOurs = (message: MemoryMessage) => boolean

function queueRow(
  tx: Transaction,
  { queue, after, sweep }: ClaimedQueue,
  isOurs: IsOurs,
): Omit<QueueRow, 'own' | 'snapshot'> {
  const now = tx.startedAt
  const scheduled = inLane(tx, { queue, lane: 'due' }, { at: now, seq: Number.POSITIVE_INFINITY })
  const dueAt = isHeld(tx, queue) ? null : nextDueAt(scheduled, isOurs)
  const lowest = sweep
    ? first(inLane(tx, { queue, lane: 'fresh' }, { at: 0, seq: Number(after) }), isOurs)
    : undefined
  return {
    kind: 'queue',
    queue,
    top: String(tx.server.seq),
    nextdue: textOf(dueAt === null ? null : dueAt - now),
    lowest: textOf(lowest?.seq ?? null),
    now: String(now),
    pause: unorderedTextOf(tx, queue),
  }
}

/** Of the next one that is ours. It is looked for among so many: behind them it is time to look again. */
export function nextDueAt(scheduled: Iterable<MemoryMessage>, isOurs: IsOurs): number | null {
  let looks = 0
  for (const message of scheduled) {
    // Those that are dead lie behind all others.
    if (message.dueAt === null || message.dueAt === Number.POSITIVE_INFINITY) return null
    if (isOurs(message) || ++looks === scheduledLooks) return message.dueAt
  }
  return null
}

/** What was promised for a time, then what is fresh. */
function pick(tx: Transaction, wanted: ClaimedQueue, isOurs: IsOurs): readonly MemoryMessage[] {
  const { queue, room, after, dueFromMs } = wanted
  if (isHeld(tx, queue)) return []
  const dueFrom = dueFromMs === null ? Number.NEGATIVE_INFINITY : microseconds(dueFromMs)
  const isLater = ({ dueAt }: MemoryMessage): boolean => dueAt !== null && dueAt > tx.startedAt
  const picked: MemoryMessage[] = []
  const take = (messages: Iterable<MemoryMessage>): void => {
    for (const message of messages) {
      if (picked.length >= room || isLater(message)) return
      if (isFree(tx, message) && isOurs(message)) picked.push(message)
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
  const isSuspect = message.deliveries > message.attempts
  const leased = {
    ...message,
    leaseToken: token,
    leasedUntil: microseconds(tx.startedAt + leaseMs),
    deliveries: message.deliveries + (isSuspect ? 0 : 1),
    timerId: null,
    firedTimerId: message.timerId ?? message.firedTimerId,
  }
  putMessage(tx, leased)
  return messageRow(leased, isSuspect)
}

function messageRow(message: MemoryMessage, isSuspect: boolean): MessageRow {
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
    suspect: String(isSuspect),
    created: String(message.createdAt),
    first: textOf(message.firstAttemptAt),
    generation: textOf(message.generation),
    due: textOf(message.dueAt),
  }
}

export const countOne: Operation<typeof countDelivery> = ({ tx }, counted) => {
  const [held] = heldBy(tx, [counted]).values()
  if (held === undefined) return []
  putMessage(tx, { ...held.message, deliveries: counted.deliveries })
  return [{ seq: counted.seq }]
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

function first<T>(items: Iterable<T>, isWanted: (item: T) => boolean): T | undefined {
  for (const item of items) if (isWanted(item)) return item
  return undefined
}
