import type { Landing } from '../../sql/landing.ts'
import type { ReplayBatch, replayDeadLetters } from '../../sql/replay-dead-letters.ts'
import type { Letter } from './dead-letters.ts'
import { arrive } from './inserting.ts'
import { advance, later, leftFor, operationOf } from './operating.ts'
import type { Operation, Work } from './operation.ts'
import { keyName, landingOf } from './ordering.ts'
import { arriveAnew, lifeAfter } from './replaying.ts'
import { type MemoryMessage, microseconds, unlived } from './rows.ts'
import { timerName } from './tables.ts'
import { awaitTimer, messageOf, type Transaction, takeKeys } from './transaction.ts'
import { isDeadLetterLocked, isLocked, timerOf } from './visible.ts'

export const replayBatch: Operation<typeof replayDeadLetters> = (work, batch) => {
  const { tx } = work
  const chosen = leftFor(tx, batch)
  const taken = chosen.filter((letter) => !isTaken(tx, letter))
  const due = dueTimes(work, batch)
  const replayed = taken
    .map(
      (letter, index): Omit<Replaying, 'dueAt'> => ({
        letter,
        lands: landingOf(tx, letter),
        isNamed: isNameFree(tx, letter, taken.slice(0, index)),
      }),
    )
    .filter(({ isNamed, lands }) => isNamed || lands === 'in_place')
    .map((one, steps): Replaying => ({ ...one, dueAt: due(one, steps) }))
  awaitAll(tx, replayed)
  for (const one of replayed) revive(work, one, lifeAfter(work, one.letter, { ...batch, ...batch.settings }))
  const lastDueAt = replayed.reduce<number | null>((last, { dueAt }) => later(last, dueAt), null)
  const [changed, limit] = [replayed.length, batch.settings.limit]
  return advance(work, batch, { chosen, changed, conflicts: taken.length - changed, lastDueAt, limit })
}

interface Replaying {
  readonly letter: Letter
  readonly lands: Landing
  /** No waiting timer has its name, nor has an older one of the batch. */
  readonly isNamed: boolean
  readonly dueAt: number | null
}

/** Before anything is written: whoever waits begins again. */
function awaitAll(tx: Transaction, replayed: readonly Replaying[]): void {
  for (const { letter, isNamed } of replayed) {
    if (letter.timer !== null && isNamed) awaitTimer(tx, timerName(letter.row.queue, letter.timer))
  }
  const behind = replayed.filter(({ lands, dueAt }) => lands === 'behind_key' && dueAt === null)
  takeKeys(
    tx,
    behind.map(({ letter: { row } }) => keyName(row.queue, row.key)),
  )
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
): (one: Omit<Replaying, 'dueAt'>, steps: number) => number | null {
  const { perSecond, delayMs } = settings
  const earliest = at + delayMs
  if (perSecond === null) {
    return (one) => (delayMs > 0 || isDueNow(one) ? microseconds(earliest) : null)
  }
  const stepMs = 1_000 / perSecond
  const last = operationOf(tx, operation)?.lastDueAt ?? null
  const first = last === null ? earliest : Math.max(earliest, last + stepMs)
  return (_, steps) => microseconds(first + steps * stepMs)
}

function isDueNow({ letter, lands }: Omit<Replaying, 'dueAt'>): boolean {
  if (lands === 'behind_key') return letter.timer !== null
  return lands === 'in_place' || letter.place === 'quarantined'
}

function revive(
  work: Work,
  { letter, lands, isNamed, dueAt }: Replaying,
  again: Pick<MemoryMessage, 'generation' | 'failureHistory'>,
): void {
  const { tx } = work
  const { place, seq, timer } = letter
  if (place === 'moved' || lands === 'behind_key') {
    arriveAnew(work, letter, { ...again, seq: ++tx.server.seq, lands, dueAt })
    return
  }
  const message = messageOf(tx, seq)
  if (message === undefined) return
  const names = { timerId: isNamed ? timer : null, firedTimerId: isNamed ? null : timer }
  const { afterDead } = message
  arrive(work, { ...message, ...unlived, afterDead, ...again, ...names, dueAt }, 'replay')
}
