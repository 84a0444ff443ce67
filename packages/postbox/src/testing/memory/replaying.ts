import { isRecord } from '../../core/validate.ts'
import type { Replay, ReplayAnswer, replayDeadLetter } from '../../sql/replay-dead-letter.ts'
import { type Letter, movedLetter, newestOf, quarantinedLetter } from './dead-letters.ts'
import { arrive } from './inserting.ts'
import type { Operation, Work } from './operation.ts'
import { microseconds, unlived } from './rows.ts'
import { timerName } from './tables.ts'
import {
  awaitDeadLetter,
  awaitMessage,
  awaitTimer,
  messageOf,
  putDeadLetter,
  type Transaction,
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
  return [{ answer: seen === null ? 'not_found' : replaySeen(work, seen, input) }]
}

function look(tx: Transaction, id: string): Seen | null {
  const newest = newestOf(tx, id)
  if (newest === undefined) return null
  const { timer, row } = newest
  return { newest, isNameTaken: timer !== null && timerOf(tx, row.queue, timer) !== undefined }
}

/** Waits for who has the dead letter; who finds it gone then has lost a race. */
function replaySeen(work: Work, seen: Seen, input: Replay): ReplayAnswer['answer'] {
  const { tx } = work
  const taken = takenOf(tx, seen)
  if (taken === undefined) return 'already_replayed'
  return taken.place === 'moved' ? insertAnew(work, taken, input) : setFree(work, { seen, taken, input })
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

/** At the end of its queue. It leaves the dead letters only if no waiting timer has its name. */
function insertAnew(work: Work, letter: Letter, input: Replay): ReplayAnswer['answer'] {
  const { tx, at } = work
  const { row, timer, seq } = letter
  if (timer !== null) awaitTimer(tx, timerName(row.queue, timer), { newest: letter, isNameTaken: false })
  const own = { ...unlived, seq: ++tx.server.seq }
  if (timer !== null && timerOf(tx, row.queue, timer) !== undefined) return 'timer_conflict'
  const { id, queue, key, body, headers, createdAt } = row
  const dueAt = input.delayMs > 0 ? microseconds(at + input.delayMs) : null
  const again = { ...lifeAfter(work, letter, input), timerId: timer, dueAt }
  arrive(work, { ...own, id, queue, key, body, headers, createdAt, ...again }, 'replay')
  putDeadLetter(tx, seq, null)
  return 'replayed'
}

interface Freeing {
  readonly seen: Seen
  readonly taken: Letter
  readonly input: Replay
}

/** Where it lies, in the due lane: its seq lies below every cursor. A name that was taken during a wait is found by the index: 23505. */
function setFree(work: Work, { seen, taken, input }: Freeing): ReplayAnswer['answer'] {
  const { tx, at } = work
  const { timer } = taken
  const message = messageOf(tx, taken.seq)
  if (message === undefined || seen.isNameTaken) return 'timer_conflict'
  if (timer !== null) awaitTimer(tx, timerName(message.queue, timer), seen)
  const dueAt = microseconds(at + input.delayMs)
  const again = { ...lifeAfter(work, taken, input), timerId: timer, dueAt }
  arrive(work, { ...message, ...unlived, ...again }, 'replay')
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
