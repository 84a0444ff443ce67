import type { ReplayBatch, replayDeadLetters } from '../../sql/replay-dead-letters.ts'
import type { Letter } from './dead-letters.ts'
import { arrive } from './inserting.ts'
import { advance, later, leftFor, operationOf } from './operating.ts'
import type { Operation, Work } from './operation.ts'
import { lifeAfter } from './replaying.ts'
import { type MemoryMessage, microseconds, unlived } from './rows.ts'
import { timerName } from './tables.ts'
import { awaitTimer, messageOf, putDeadLetter, type Transaction } from './transaction.ts'
import { isDeadLetterLocked, isLocked, timerOf } from './visible.ts'

export const replayBatch: Operation<typeof replayDeadLetters> = (work, batch) => {
  const { tx } = work
  const chosen = leftFor(tx, batch)
  const taken = chosen.filter((letter) => !isTaken(tx, letter))
  const replayed = taken.filter((letter, index) => isNameFree(tx, letter, taken.slice(0, index)))
  // Before anything is written: whoever waits begins again.
  for (const { timer, row } of replayed) if (timer !== null) awaitTimer(tx, timerName(row.queue, timer))
  let lastDueAt: number | null = null
  const due = dueTimes(work, batch)
  for (const [steps, letter] of replayed.entries()) {
    const dueAt = due(letter, steps)
    lastDueAt = later(lastDueAt, dueAt)
    revive(work, letter, { ...lifeAfter(work, letter, { ...batch, ...batch.settings }), dueAt })
  }
  const [changed, limit] = [replayed.length, batch.settings.limit]
  return advance(work, batch, { chosen, changed, conflicts: taken.length - changed, lastDueAt, limit })
}

/** By somebody else. */
export function isTaken(tx: Transaction, { place, seq }: Letter): boolean {
  return place === 'moved' ? isDeadLetterLocked(tx, seq) : isLocked(tx, seq)
}

/** Of one name the oldest is replayed, unless a timer of that name waits. */
function isNameFree(tx: Transaction, { timer, row }: Letter, older: readonly Letter[]): boolean {
  if (timer === null) return true
  const isSame = (other: Letter): boolean => other.timer === timer && other.row.queue === row.queue
  return !older.some(isSame) && timerOf(tx, row.queue, timer) === undefined
}

function dueTimes(
  { tx, at }: Work,
  { operation, settings }: ReplayBatch,
): (letter: Letter, steps: number) => number | null {
  const { perSecond, delayMs } = settings
  const earliest = at + delayMs
  if (perSecond === null) {
    return ({ place }) => (place === 'quarantined' || delayMs > 0 ? microseconds(earliest) : null)
  }
  const stepMs = 1_000 / perSecond
  const last = operationOf(tx, operation)?.lastDueAt ?? null
  const first = last === null ? earliest : Math.max(earliest, last + stepMs)
  return (_, steps) => microseconds(first + steps * stepMs)
}

function revive(
  work: Work,
  { place, seq, timer, row }: Letter,
  again: Pick<MemoryMessage, 'generation' | 'failureHistory' | 'dueAt'>,
): void {
  const { tx } = work
  if (place === 'moved') {
    const { id, queue, key, body, headers, createdAt } = row
    const own = { ...unlived, seq: ++tx.server.seq, id, queue, key, body, headers, createdAt, timerId: timer }
    arrive(work, { ...own, ...again }, 'replay')
    putDeadLetter(tx, seq, null)
    return
  }
  const message = messageOf(tx, seq)
  if (message !== undefined) arrive(work, { ...message, ...unlived, ...again, timerId: timer }, 'replay')
}
