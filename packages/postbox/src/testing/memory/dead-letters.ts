import { type DeadLetterCursor, type DeadPlace, seqFrom, seqUpTo } from '../../core/dead-letter-cursor.ts'
import type { DeadLetterQuery } from '../../core/dead-letter-options.ts'
import type { countDeadLetters } from '../../sql/count-dead-letters.ts'
import type { DeadLetterRow } from '../../sql/dead-letters.ts'
import type { getDeadLetter } from '../../sql/get-dead-letter.ts'
import type { listDeadLetters } from '../../sql/list-dead-letters.ts'
import type { Stretch } from '../../sql/oldest-dead-letters.ts'
import type { sampleDeadLetters } from '../../sql/sample-dead-letters.ts'
import type { surveyDeadLetters } from '../../sql/survey-dead-letters.ts'
import type { Operation } from './operation.ts'
import { base64Of, jsonOf, type MemoryDeadLetter, type MemoryMessage, textOf } from './rows.ts'
import type { Transaction } from './transaction.ts'
import { allDeadLetters, allMessages } from './visible.ts'

/** A dead letter, wherever it lies. */
export interface Letter {
  readonly place: DeadPlace
  /** In its own table. */
  readonly seq: number
  readonly timer: string | null
  /** It holds its key. */
  readonly isParked: boolean
  readonly row: Dead
}

/** What is read of either kind of row. */
type Dead = Pick<MemoryMessage, Exclude<keyof MemoryMessage & keyof MemoryDeadLetter, 'timerId'>> & {
  readonly failedAt: number
}

export const list: Operation<typeof listDeadLetters> = ({ tx }, { query, limit, after }) =>
  newestFirst(tx)
    .filter(matching(query))
    .filter((letter) => after === null || isBehind(letter, after))
    .slice(0, limit + 1)
    .map(rowOf)

export const count: Operation<typeof countDeadLetters> = ({ tx }, { query, bound }) => {
  const found = lettersOf(tx).filter(matching(query)).length
  return [{ count: String(Math.min(found, bound + 1)) }]
}

export const get: Operation<typeof getDeadLetter> = ({ tx }, id) => {
  const newest = newestOf(tx, id)
  return newest === undefined ? [] : [rowOf(newest)]
}

/** The one that replay and get mean. */
export function newestOf(tx: Transaction, id: string): Letter | undefined {
  return newestFirst(tx).find(({ row }) => row.id === id.toLowerCase())
}

/** What is left of a stretch, the oldest first. */
export function oldestOf(tx: Transaction, stretch: Stretch): readonly Letter[] {
  const { query, after, beforeMicros, sparesParked = false } = stretch
  const before = Number(beforeMicros ?? Number.POSITIVE_INFINITY)
  return lettersOf(tx)
    .filter(matching(query))
    .filter(({ row, isParked }) => micros(row.failedAt) < before && !(sparesParked && isParked))
    .filter((letter) => after === null || isAbove(letter, after))
    .sort((a, b) => a.row.failedAt - b.row.failedAt || byPlace(a.place, b.place) || a.seq - b.seq)
}

export const sample: Operation<typeof sampleDeadLetters> = ({ tx }, { query, limit }) =>
  oldestOf(tx, { query, after: null, beforeMicros: null }).slice(0, limit).map(rowOf)

export const survey: Operation<typeof surveyDeadLetters> = ({ tx }, { query, bound }) => {
  const groups = new Map<string, { readonly queue: string; readonly reason: string | null; count: number }>()
  for (const { row } of lettersOf(tx)
    .filter(matching(query))
    .slice(0, bound + 1)) {
    const { queue, failureReason: reason } = row
    const name = `${queue}\0${reason}`
    const group = groups.get(name) ?? { queue, reason, count: 0 }
    group.count++
    groups.set(name, group)
  }
  return [...groups]
    .sort(([a, { count: ofA }], [b, { count: ofB }]) => ofB - ofA || (a < b ? -1 : 1))
    .map(([, group]) => ({ ...group, count: String(group.count) }))
}

function newestFirst(tx: Transaction): readonly Letter[] {
  return lettersOf(tx).sort(
    (a, b) => b.row.failedAt - a.row.failedAt || byPlace(a.place, b.place) || b.seq - a.seq,
  )
}

function lettersOf(tx: Transaction): Letter[] {
  return [...allDeadLetters(tx).map(movedLetter), ...allMessages(tx).flatMap((row) => quarantinedLetter(row))]
}

export function movedLetter(row: MemoryDeadLetter): Letter {
  return { place: 'moved', seq: row.deadSeq, timer: row.timerId, isParked: false, row }
}

/** A quarantined timer has given its name up. None, when the message lives. */
export function quarantinedLetter(row: MemoryMessage): readonly Letter[] {
  const { failedAt, seq, firedTimerId } = row
  if (failedAt === null) return []
  const own = { timer: row.timerId ?? firedTimerId, isParked: row.parkedAt !== null }
  return [{ place: 'quarantined', seq, ...own, row: { ...row, failedAt } }]
}

function byPlace(a: DeadPlace, b: DeadPlace): number {
  return a === b ? 0 : a === 'moved' ? -1 : 1
}

function matching({
  queue,
  reason,
  key,
  search,
  sinceMs,
  untilMs,
}: DeadLetterQuery): (letter: Letter) => boolean {
  const part = search?.toLowerCase()
  return ({ row }) =>
    (queue === null || row.queue === queue) &&
    (sinceMs === null || row.failedAt >= sinceMs) &&
    (untilMs === null || row.failedAt < untilMs) &&
    (reason === null || row.failureReason === reason) &&
    (key === null || row.key === key) &&
    (part === undefined || row.lastError?.toLowerCase().includes(part) === true)
}

/** Whether a page that begins behind the cursor has it. */
function isBehind({ place, seq, row }: Letter, after: DeadLetterCursor): boolean {
  const [own, left] = [micros(row.failedAt), Number(after.failedMicros)]
  return own < left || (own === left && seq <= Number(seqUpTo(after, place)))
}

function isAbove({ place, seq, row }: Letter, after: DeadLetterCursor): boolean {
  const [own, left] = [micros(row.failedAt), Number(after.failedMicros)]
  return own > left || (own === left && seq >= Number(seqFrom(after, place)))
}

export function micros(ms: number): number {
  return Math.round(ms * 1_000)
}

function rowOf({ place, seq, timer, isParked, row }: Letter): DeadLetterRow {
  return {
    place,
    seq: String(seq),
    id: row.id,
    queue: row.queue,
    key: row.key,
    timer,
    body: base64Of(row.body),
    headers: jsonOf(row.headers),
    attempts: String(row.attempts),
    deliveries: String(row.deliveries),
    created: String(row.createdAt),
    first: textOf(row.firstAttemptAt),
    last: textOf(row.lastAttemptAt),
    generation: textOf(row.generation),
    failed: String(row.failedAt),
    micros: String(micros(row.failedAt)),
    reason: row.failureReason,
    error: row.lastError,
    history: jsonOf(row.failureHistory),
    parked: String(isParked),
  }
}
