import type { discardDeadLetter } from '../../sql/discard-dead-letter.ts'
import type { discardDeadLetters } from '../../sql/discard-dead-letters.ts'
import type { purgeDeadLetters } from '../../sql/purge-dead-letters.ts'
import { type Letter, newestOf, oldestOf } from './dead-letters.ts'
import { goOnWith, nextOf } from './keys.ts'
import { advance, leftFor, untouched } from './operating.ts'
import type { Operation } from './operation.ts'
import { isTaken } from './replaying-many.ts'
import {
  awaitDeadLetter,
  awaitMessage,
  messageOf,
  putDeadLetter,
  putOperation,
  removeMessage,
  type Transaction,
} from './transaction.ts'
import { deadLetterOf } from './visible.ts'

export const discardBatch: Operation<typeof discardDeadLetters> = (work, batch) => {
  const { tx } = work
  const chosen = leftFor(tx, batch)
  const taken = chosen.filter((letter) => !isTaken(tx, letter))
  for (const letter of taken) remove(tx, letter)
  return advance(work, batch, { chosen, changed: taken.length, conflicts: 0, lastDueAt: null, limit: null })
}

/** Waits for who has it; who finds it gone then has lost a race. */
export const discardOne: Operation<typeof discardDeadLetter> = (work, { id, by, operation }) => {
  const { tx, seen } = work
  const newest = (seen as Letter | null) ?? newestOf(tx, id)
  if (newest === undefined) return []
  const held = newest.place === 'moved' ? undefined : messageOf(tx, newest.seq)
  const next = held?.parkedAt == null ? undefined : nextOf(tx, held, newest)
  if (!remove(tx, newest)) return []
  if (next !== undefined) goOnWith(work, next, newest.row.id)
  const { startedAt } = tx
  putOperation(tx, operation, {
    ...untouched,
    ...{ id: operation, kind: 'discard', by, filter: { id: newest.row.id }, settings: {} },
    ...{ startedAt, updatedAt: startedAt, finishedAt: startedAt, changed: 1 },
  })
  return [{ discarded: '1' }]
}

export const purge: Operation<typeof purgeDeadLetters> = ({ tx, at }, { place, olderThanMs, limit }) => {
  const query = { queue: null, reason: null, key: null, search: null, sinceMs: null, untilMs: null }
  const old = oldestOf(tx, { query, after: null, beforeMicros: null, sparesParked: true })
    .filter((letter) => letter.place === place && letter.row.failedAt <= at - olderThanMs)
    .filter((letter) => !isTaken(tx, letter))
    .slice(0, limit)
  for (const letter of old) remove(tx, letter)
  return [{ purged: String(old.length) }]
}

/** False: it is gone, or lives. */
function remove(tx: Transaction, letter: Letter): boolean {
  const { place, seq } = letter
  if (place === 'moved') {
    awaitDeadLetter(tx, seq, letter)
    if (deadLetterOf(tx, seq) === undefined) return false
    putDeadLetter(tx, seq, null)
    return true
  }
  awaitMessage(tx, seq, letter)
  if ((messageOf(tx, seq)?.failedAt ?? null) === null) return false
  removeMessage(tx, seq)
  return true
}
