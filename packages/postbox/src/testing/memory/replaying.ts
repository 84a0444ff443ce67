import { isRecord } from '../../core/validate.ts'
import type { Landing } from '../../sql/landing.ts'
import type { Replay, ReplayAnswer, replayDeadLetter } from '../../sql/replay-dead-letter.ts'
import { type Letter, movedLetter, newestOf, quarantinedLetter } from './dead-letters.ts'
import { arrive } from './inserting.ts'
import type { Operation, Work } from './operation.ts'
import { keyName, landingOf } from './ordering.ts'
import { type MemoryMessage, microseconds, unlived } from './rows.ts'
import { timerName } from './tables.ts'
import {
  awaitDeadLetter,
  awaitMessage,
  awaitTimer,
  messageOf,
  putDeadLetter,
  removeMessage,
  type Transaction,
  takeKeys,
} from './transaction.ts'
import { deadLetterOf, timerOf } from './visible.ts'

/** What the statement saw when it began: it goes by that after a wait, too. */
interface Seen {
  readonly newest: Letter
  /** Whether a waiting timer had the name. */
  readonly isNameTaken: boolean
}

export const replay: Operation<typeof replayDeadLetter> = (work, input) => {
  const seen = (work.seen as Seen | null) ?? look(work.tx, input.id)
  return [seen === null ? { answer: 'not_found', lands: null } : replaySeen(work, seen, input)]
}

function look(tx: Transaction, id: string): Seen | null {
  const newest = newestOf(tx, id)
  if (newest === undefined) return null
  const { timer, row } = newest
  return { newest, isNameTaken: timer !== null && timerOf(tx, row.queue, timer) !== undefined }
}

/** Waits for who has the dead letter; who finds it gone then has lost a race. */
function replaySeen(work: Work, seen: Seen, input: Replay): ReplayAnswer {
  const { tx } = work
  const taken = takenOf(tx, seen)
  if (taken === undefined) return { answer: 'already_replayed', lands: null }
  const lands = landingOf(tx, taken)
  const isInserted = taken.place === 'moved' || lands === 'behind_key'
  const replaying = { seen, taken, lands, input }
  return { answer: isInserted ? insertAnew(work, replaying) : setFree(work, replaying), lands }
}

interface Freeing {
  readonly seen: Pick<Seen, 'isNameTaken'>
  readonly taken: Letter
  readonly lands: Landing
  readonly input: Telling & Pick<Replay, 'delayMs'>
}

interface Replaying extends Freeing {
  readonly seen: Seen
}

function takenOf(tx: Transaction, seen: Seen): Letter | undefined {
  const { place, seq } = seen.newest
  if (place === 'moved') {
    awaitDeadLetter(tx, seq, seen)
    const row = deadLetterOf(tx, seq)
    return row === undefined ? undefined : movedLetter(row)
  }
  awaitMessage(tx, seq, seen)
  const row = messageOf(tx, seq)
  return row === undefined ? undefined : quarantinedLetter(row)[0]
}

/** At the end of its queue, or of its key. It leaves the dead letters only if no waiting timer has its name. */
function insertAnew(work: Work, { seen, taken, lands, input }: Replaying): ReplayAnswer['answer'] {
  const { tx, at } = work
  const { row, timer } = taken
  if (timer !== null) awaitTimer(tx, timerName(row.queue, timer), { newest: taken, isNameTaken: false })
  const isDue = input.delayMs > 0 || (lands === 'behind_key' && timer !== null)
  const dueAt = isDue ? microseconds(at + input.delayMs) : null
  if (lands === 'behind_key' && dueAt === null) takeKeys(tx, [keyName(row.queue, row.key)], seen)
  const seq = ++tx.server.seq
  if (timer !== null && timerOf(tx, row.queue, timer) !== undefined) return 'timer_conflict'
  arriveAnew(work, taken, { ...lifeAfter(work, taken, input), seq, lands, dueAt })
  return 'replayed'
}

interface Anew extends Pick<MemoryMessage, 'seq' | 'dueAt' | 'generation' | 'failureHistory'> {
  readonly lands: Landing
}

/** As a row of its own. One that is due later takes its place in its key then. */
export function arriveAnew(work: Work, { place, seq: before, timer, row }: Letter, anew: Anew): void {
  const { tx } = work
  const { lands, ...again } = anew
  const { id, queue, body, headers, createdAt } = row
  const isLater = lands === 'behind_key' && again.dueAt !== null
  const keys = { key: isLater ? null : row.key, laterKey: isLater ? row.key : null }
  const message = { ...unlived, id, queue, body, headers, createdAt, timerId: timer, ...keys, ...again }
  arrive(work, message, 'replay')
  if (place === 'moved') putDeadLetter(tx, before, null)
  else removeMessage(tx, before)
}

/**
 * Where it lies, in the due lane: its seq lies below every cursor. A name that was taken during a wait is found by the index: 23505. What has its place
 * in its key goes without a name that is taken.
 */
export function setFree(work: Work, { seen, taken, lands, input }: Freeing): ReplayAnswer['answer'] {
  const { tx, at } = work
  const { timer } = taken
  const message = messageOf(tx, taken.seq)
  const isNamed = !seen.isNameTaken
  if (message === undefined || (!isNamed && lands !== 'in_place')) return 'timer_conflict'
  if (timer !== null && isNamed) awaitTimer(tx, timerName(message.queue, timer), seen)
  const dueAt = microseconds(at + input.delayMs)
  const { afterDead } = message
  const names = { timerId: isNamed ? timer : null, firedTimerId: isNamed ? null : timer }
  arrive(
    work,
    { ...message, ...unlived, afterDead, ...lifeAfter(work, taken, input), ...names, dueAt },
    'replay',
  )
  return 'replayed'
}

/** What a replay says of itself. */
interface Telling extends Pick<Replay, 'by' | 'generation' | 'historyLimit'> {
  readonly operation?: string
}

export function lifeAfter(
  { at }: Work,
  { row }: Letter,
  { by, generation, historyLimit, operation }: Telling,
): { readonly generation: number | null; readonly failureHistory: unknown } {
  const generationAfter = generation ?? row.generation
  const cycle = {
    attempts: row.attempts,
    deliveries: row.deliveries,
    firstAttemptAt: iso(row.firstAttemptAt),
    lastAttemptAt: iso(row.lastAttemptAt),
    failedAt: iso(row.failedAt),
    reason: row.failureReason,
    error: row.lastError,
    replayedAt: iso(at),
    replayedBy: by,
    generationBefore: row.generation,
    generationAfter,
    operation: operation ?? null,
  }
  const before = historyBefore(row.failureHistory)
  const cycles = [...before.cycles, cycle]
  const dropped = before.dropped + Math.max(0, cycles.length - historyLimit)
  return { generation: generationAfter, failureHistory: { dropped, cycles: cycles.slice(-historyLimit) } }
}

function historyBefore(history: unknown): { readonly dropped: number; readonly cycles: readonly unknown[] } {
  const { dropped, cycles } = isRecord(history) ? history : {}
  return {
    dropped: typeof dropped === 'number' ? dropped : 0,
    cycles: Array.isArray(cycles) ? cycles : [],
  }
}

/** With microseconds, as Postgres writes it. */
function iso(ms: number | null): string | null {
  if (ms === null) return null
  const whole = Math.floor(ms)
  const rest = Math.round((ms - whole) * 1_000)
  return new Date(whole).toISOString().replace('Z', `${String(rest).padStart(3, '0')}Z`)
}
