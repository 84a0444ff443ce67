import type { Burial, buryDead } from '../../sql/bury-dead.ts'
import type { discardDead } from '../../sql/discard-dead.ts'
import type { findBuried } from '../../sql/find-buried.ts'
import type { parkDead, quarantineDead } from '../../sql/quarantine-dead.ts'
import { type HeldMessage, heldBy } from './claiming.ts'
import type { Operation } from './operation.ts'
import { inOrder } from './ordering.ts'
import { putDeadLetter, putMessage, removeMessage, type Transaction } from './transaction.ts'
import { allDeadLetters, allMessages } from './visible.ts'

export const bury: Operation<typeof buryDead> = ({ tx }, burials) => {
  const held = [...heldBy(tx, burials).values()]
  for (const one of held) {
    const { message } = one
    const deadSeq = ++tx.server.deadSeq
    removeMessage(tx, message.seq)
    putDeadLetter(tx, deadSeq, {
      deadSeq,
      originalSeq: message.seq,
      id: message.id,
      queue: message.queue,
      key: message.key,
      timerId: message.timerId ?? message.firedTimerId,
      body: message.body,
      headers: message.headers,
      deliveries: message.deliveries,
      createdAt: message.createdAt,
      generation: message.generation,
      failureHistory: message.failureHistory,
      ...deathOf(tx, one),
    })
  }
  noteAll(tx, held)
  return held.map(({ message }) => ({ seq: String(message.seq) }))
}

export const discardThem: Operation<typeof discardDead> = ({ tx }, burials) => {
  const held = [...heldBy(tx, burials).values()]
  for (const { message } of held) removeMessage(tx, message.seq)
  noteAll(tx, held)
  return held.map(({ message }) => ({ seq: String(message.seq) }))
}

/** Due never, so that nobody claims them; the name of a timer stays given up. */
export const quarantine: Operation<typeof quarantineDead> = ({ tx }, burials) => {
  const held = dieInPlace(tx, burials, null)
  noteAll(tx, held)
  return held.map(({ message }) => ({ seq: String(message.seq) }))
}

/** The same, and the key is held. */
export const park: Operation<typeof parkDead> = ({ tx }, burials) =>
  dieInPlace(tx, burials, tx.startedAt).map(({ message }) => ({ seq: String(message.seq) }))

function dieInPlace(
  tx: Transaction,
  burials: readonly Burial[],
  parkedAt: number | null,
): readonly HeldMessage<Burial>[] {
  const held = [...heldBy(tx, burials).values()]
  for (const one of held) {
    putMessage(tx, {
      ...one.message,
      ...deathOf(tx, one),
      parkedAt,
      dueAt: Number.POSITIVE_INFINITY,
      leaseToken: null,
      leasedUntil: null,
    })
  }
  return held
}

/** What waits behind them in their keys says who died: when all of them are gone. */
function noteAll(tx: Transaction, dead: readonly HeldMessage<Burial>[]): void {
  for (const { message, entry } of dead) {
    const { queue, key, seq, id } = message
    const next = entry.isNoted ? inOrder(tx, queue, key).find((other) => other.seq > seq) : undefined
    if (next !== undefined) putMessage(tx, { ...next, afterDead: id })
  }
}

/** Only a run makes an attempt. */
function deathOf({ startedAt: now }: Transaction, { message, entry }: HeldMessage<Burial>) {
  const wasRun = entry.attempts > message.attempts
  return {
    attempts: entry.attempts,
    firstAttemptAt: wasRun ? (message.firstAttemptAt ?? now) : message.firstAttemptAt,
    lastAttemptAt: wasRun ? now : message.lastAttemptAt,
    failedAt: now,
    failureReason: entry.reason,
    lastError: entry.error,
  }
}

export const findThoseBuried: Operation<typeof findBuried> = ({ tx }, { messages, place }) => {
  const wanted = new Set(
    messages.map(({ seq, id, deliveries }) => `${seq} ${id.toLowerCase()} ${deliveries}`),
  )
  const buried =
    place === 'moved'
      ? allDeadLetters(tx).map(({ originalSeq: seq, id, deliveries }) => ({ seq, id, deliveries }))
      : allMessages(tx).filter(({ failedAt }) => failedAt !== null)
  return buried
    .filter(({ seq, id, deliveries }) => wanted.has(`${seq} ${id} ${deliveries}`))
    .map(({ seq }) => ({ seq: String(seq) }))
}
