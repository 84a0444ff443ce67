// What a transaction sees: what is committed, and over it what it has written itself.
import { compare, type Place } from './order.ts'
import type { MemoryDeadLetter, MemoryDelivered, MemoryMessage, MemoryOperation } from './rows.ts'
import { type Lane, laneOf, nameHeldBy, placeOf, timerName } from './tables.ts'
import { messageOf, type Transaction } from './transaction.ts'

/** The messages of a queue that lie above a place in one of its lanes, in order. */
export function* inLane(
  tx: Transaction,
  { queue, lane }: { readonly queue: string; readonly lane: Lane },
  above: Place,
): Iterable<MemoryMessage> {
  if (tx.messages.size > 0) {
    const isThere = (message: MemoryMessage): boolean =>
      message.queue === queue && laneOf(message) === lane && compare(placeOf(message), above) > 0
    yield* allMessages(tx)
      .filter(isThere)
      .sort((a, b) => compare(placeOf(a), placeOf(b)))
    return
  }
  const { tables } = tx.server
  for (const seq of tables.lane(queue, lane)?.above(above) ?? []) {
    const message = tables.messages.get(seq)
    if (message !== undefined) yield message
  }
}

/** By seq. */
export function allMessages(tx: Transaction): MemoryMessage[] {
  const committed = [...tx.server.tables.messages.values()].filter(({ seq }) => !tx.messages.has(seq))
  const own = [...tx.messages.values()].filter((message) => message !== null)
  return [...committed, ...own].sort((a, b) => a.seq - b.seq)
}

export function allDeadLetters(tx: Transaction): MemoryDeadLetter[] {
  const committed = [...tx.server.tables.dead.values()].filter(({ deadSeq }) => !tx.dead.has(deadSeq))
  return [...committed, ...[...tx.dead.values()].filter((letter) => letter !== null)]
}

export function allDelivered(tx: Transaction): MemoryDelivered[] {
  const { delivered } = tx.server.tables
  const committed = [...delivered.values()].filter(({ deliveredSeq }) => !tx.delivered.has(deliveredSeq))
  return [...committed, ...[...tx.delivered.values()].filter((row) => row !== null)]
}

export function deadLetterOf(tx: Transaction, deadSeq: number): MemoryDeadLetter | undefined {
  const own = tx.dead.get(deadSeq)
  return own === undefined ? tx.server.tables.dead.get(deadSeq) : (own ?? undefined)
}

export function allOperations(tx: Transaction): MemoryOperation[] {
  const committed = [...tx.server.tables.operations.values()].filter(({ id }) => !tx.operations.has(id))
  return [...committed, ...[...tx.operations.values()].filter((operation) => operation !== null)]
}

/** The waiting timer that has the name. */
export function timerOf(tx: Transaction, queue: string, timerId: string): MemoryMessage | undefined {
  const name = timerName(queue, timerId)
  const seq = tx.timers.get(name) ?? tx.server.tables.timers.get(name)
  const message = seq === undefined ? undefined : messageOf(tx, seq)
  return nameHeldBy(message) === name ? message : undefined
}

/** Whether somebody else has written the message and has not ended. */
export function isLocked(tx: Transaction, seq: number): boolean {
  const owner = tx.server.locks.messages.get(seq)
  return owner !== undefined && owner !== tx
}

export function isDeadLetterLocked(tx: Transaction, deadSeq: number): boolean {
  const owner = tx.server.locks.dead.get(deadSeq)
  return owner !== undefined && owner !== tx
}
