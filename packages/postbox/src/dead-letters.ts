import type { Database } from './adapters/executor.ts'
import type { BodyRules } from './core/body-rules.ts'
import { cursorText } from './core/dead-letter-cursor.ts'
import {
  assertMessageId,
  type DeadLetterFilter,
  type DeadLetterListOptions,
  type ReplayOptions,
  type ReplayQuery,
  resolveDeadLetterFilter,
  resolveDeadLetterPage,
  resolveReplay,
} from './core/dead-letter-options.ts'
import { OutboxError } from './core/errors.ts'
import { type FailureHistory, historyFrom, historyLimit } from './core/failure-history.ts'
import type { Headers } from './core/headers.ts'
import type { DeadReason } from './core/settlement.ts'
import { sqlState, sqlStateOf } from './core/sql-state.ts'
import type { DeadLetterStorage } from './core/storage-modes.ts'
import { createDeadLetterOperations, type DeadLetterOperations } from './dead-letter-operations.ts'
import { readCommitted } from './runtime/read-committed.ts'
import type { BoundedCount } from './runtime/stats.ts'
import { dateFrom } from './sql/columns.ts'
import { countDeadLetters } from './sql/count-dead-letters.ts'
import type { DeadLetterRow } from './sql/dead-letters.ts'
import { getDeadLetter } from './sql/get-dead-letter.ts'
import { listDeadLetters } from './sql/list-dead-letters.ts'
import { mostReplayTries, type ReplayAnswer, replayDeadLetter } from './sql/replay-dead-letter.ts'
import { orSchemaMissing } from './sql/schema-missing.ts'
import type { Statement } from './sql/statement.ts'
import { heardWake } from './sql/wake.ts'
import { storedMessage } from './stored-message.ts'
import type { Publishing } from './write.ts'

/** A message that is delivered no more, until it is replayed. */
export interface DeadLetter {
  readonly id: string
  readonly queue: string
  readonly key: string | null
  readonly timerId: string | null
  /** Decoded, not validated; `undefined` when the bytes are not what their content type says. */
  readonly body: unknown
  readonly headers: Headers
  readonly correlationId: string
  /** Runs that failed. */
  readonly attempts: number
  readonly deliveries: number
  readonly createdAt: Date
  readonly firstAttemptAt: Date | null
  readonly lastAttemptAt: Date | null
  readonly generation: number | null
  readonly failedAt: Date
  /** A later version may write others. */
  readonly reason: DeadReason
  readonly error: string | null
  /** What happened before its last replay. */
  readonly failureHistory: FailureHistory
  /**
   * It lies among the messages, though that is not where this outbox keeps its dead letters: it could not be moved, or was buried under
   * another `deadLetters`, or its key went on without it. Nobody gets it, and it is listed and replayed as any other.
   */
  readonly isQuarantined: boolean
  /**
   * It holds its key, in an ordered queue: what comes behind it waits until it is replayed (in its place) or discarded, or until the key is resumed or
   * skipped (`outbox.keys`).
   */
  readonly isParked: boolean
  /** The body's bytes as they are stored. */
  readonly raw: Uint8Array
}

export interface DeadLetterPage {
  readonly items: readonly DeadLetter[]
  /** Where the next page begins, for `after`; null: this was the last. */
  readonly next: string | null
}

export type ReplayResult =
  | {
      readonly replayed: true
      /**
       * in_place: it held its key, and is the first of it as before. behind_key: in an ordered queue, behind all of its key that is there by then; with
       * `delayMs`, or when it is a timer, once it is due. anywhere: it has no key, or its queue no order.
       */
      readonly lands: 'in_place' | 'behind_key' | 'anywhere'
    }
  | {
      readonly replayed: false
      /**
       * not_found: no dead letter has this id. already_replayed: somebody else did, this very moment. timer_conflict: a timer of the same
       * name waits; nothing was changed. One that held its key goes on without the name instead.
       */
      readonly because: 'not_found' | 'already_replayed' | 'timer_conflict'
    }

/** The dead letters of an outbox, wherever they lie. Every call is a transaction of its own, but for those that work in batches. */
export interface DeadLetters extends DeadLetterOperations<DeadLetter> {
  /** Newest first. Pages follow each other without gaps or repetitions, whatever is added meanwhile. */
  list(options?: DeadLetterListOptions): Promise<DeadLetterPage>
  /** The newest of that id. */
  get(id: string): Promise<DeadLetter | null>
  /** Stops at ten thousand: then there are at least as many. */
  count(filter?: DeadLetterFilter): Promise<BoundedCount>
  /**
   * Puts the newest of that id back into its queue, with its id, headers, key and time of creation, as if it had never been tried. In an ordered queue behind
   * its key, unless it has held that: then in its place.
   */
  replay(id: string, options: ReplayOptions): Promise<ReplayResult>
}

/** What the dead letters need to know of their outbox. */
export type DeadLetterRules = BodyRules & Pick<Publishing, 'names' | 'wake'>

export interface DeadLettersParts {
  readonly database: () => Database
  readonly outbox: DeadLetterRules
  /** Where the outbox lays them down: they are read wherever they lie. @default 'table' */
  readonly deadLetters?: DeadLetterStorage
  /** Where `count` stops. @default 10_000 */
  readonly countBound?: number
}

export function createDeadLetters(parts: DeadLettersParts): DeadLetters {
  const { database, outbox, countBound = 10_000 } = parts
  const { names, wake } = outbox
  const show = (row: DeadLetterRow): DeadLetter => deadLetterOf(parts, row)
  const read = async <Row>(statement: Statement<Row>): Promise<readonly Row[]> => {
    try {
      return await database().run(statement)
    } catch (error) {
      throw orSchemaMissing(error, names.dead)
    }
  }
  return Object.freeze({
    async list(options) {
      const page = resolveDeadLetterPage(options)
      const rows = await read(listDeadLetters(names, page))
      return pageOf(parts, rows, page.limit)
    },
    async get(id) {
      assertMessageId(id)
      const [row] = await read(getDeadLetter(names, id))
      return row === undefined ? null : deadLetterOf(parts, row)
    },
    async count(filter) {
      const [row] = await read(countDeadLetters(names, resolveDeadLetterFilter(filter), countBound))
      const seen = Number(row?.count)
      return { count: Math.min(seen, countBound), atLeast: seen > countBound }
    },
    async replay(id, options) {
      assertMessageId(id)
      return replay(database(), parts.outbox, { id, ...resolveReplay(options) })
    },
    ...createDeadLetterOperations({ database, names, wake, countBound, show }),
  } satisfies DeadLetters)
}

/** One row more than the page holds tells that another page follows. */
function pageOf(parts: LetterRules, rows: readonly DeadLetterRow[], limit: number): DeadLetterPage {
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  return {
    items: shown.map((row) => deadLetterOf(parts, row)),
    next: last === undefined ? null : cursorText({ ...last, failedMicros: last.micros }),
  }
}

interface LetterRules {
  readonly outbox: BodyRules
  readonly deadLetters?: DeadLetterStorage
}

export function deadLetterOf({ outbox, deadLetters }: LetterRules, row: DeadLetterRow): DeadLetter {
  return {
    ...storedMessage(outbox, row),
    firstAttemptAt: row.first === null ? null : dateFrom(row.first),
    lastAttemptAt: row.last === null ? null : dateFrom(row.last),
    failedAt: dateFrom(row.failed),
    reason: row.reason as DeadReason,
    error: row.error,
    failureHistory: historyFrom(row.history),
    isQuarantined: row.place === 'quarantined' && row.parked === 'false' && deadLetters !== 'in-place',
    isParked: row.parked === 'true',
  }
}

async function replay(
  database: Database,
  { names, wake }: DeadLetterRules,
  query: ReplayQuery & { readonly id: string },
): Promise<ReplayResult> {
  const statement = replayDeadLetter(names, { ...query, historyLimit, wake: heardWake(wake, database) })
  for (let tries = 1; ; tries++) {
    try {
      return resultOf(await readCommitted(database, (tx) => tx.run(statement)))
    } catch (error) {
      const isRace = sqlStateOf(error) === sqlState.uniqueViolation && tries < mostReplayTries
      if (!isRace) throw orSchemaMissing(error, names.dead)
    }
  }
}

function resultOf([row]: readonly ReplayAnswer[]): ReplayResult {
  const answer = row?.answer
  if (answer === undefined) {
    const sentence = 'the client renames the columns of its answers: what became of the replay cannot be read'
    throw new OutboxError('OUTBOX_UNKNOWN_HANDLE', sentence)
  }
  if (answer !== 'replayed') return { replayed: false, because: answer }
  return { replayed: true, lands: row?.lands ?? 'anywhere' }
}
