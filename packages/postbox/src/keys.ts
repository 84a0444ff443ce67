import type { Database } from './adapters/executor.ts'
import { historyLimit } from './core/failure-history.ts'
import {
  assertKeyDecision,
  type BlockedState,
  type KeyCursor,
  type KeyListOptions,
  type KeyOptions,
  keyCursorText,
  resolveKeyList,
} from './core/key-options.ts'
import type { DeadReason } from './core/settlement.ts'
import { sqlState, sqlStateOf } from './core/sql-state.ts'
import { readCommitted } from './runtime/read-committed.ts'
import type { BoundedCount } from './runtime/stats.ts'
import { dateFrom } from './sql/columns.ts'
import { type KeyRow, listKeys, mostWaiting } from './sql/list-keys.ts'
import { mostReplayTries } from './sql/replay-dead-letter.ts'
import { resumeKey } from './sql/resume-key.ts'
import { orSchemaMissing } from './sql/schema-missing.ts'
import { skipKey } from './sql/skip-key.ts'
import { heardWake } from './sql/wake.ts'
import type { Publishing } from './write.ts'

/** A key of an ordered queue whose first message keeps the others waiting. */
export interface BlockedKey {
  readonly queue: string
  readonly key: string
  /** `parked`: its first message is dead, and somebody has to decide. `retrying`: its first message waits for its next run. */
  readonly state: BlockedState
  /** Its first message. */
  readonly head: {
    readonly id: string
    readonly seq: string
    /** Runs that failed. */
    readonly attempts: number
    /** Why it is dead; null: it is not. */
    readonly reason: DeadReason | null
    readonly error: string | null
    /** When it was parked; of one that is retried, its first run that failed. Null: it was only snoozed. */
    readonly since: Date | null
    /** When it is tried again; null: when somebody resumes it. */
    readonly dueAt: Date | null
  }
  /** How many wait behind it. Stops at a thousand. */
  readonly waiting: BoundedCount
}

export interface KeyPage {
  readonly items: readonly BlockedKey[]
  /** Where the next page begins, for `after`; null: this was the last. A page may be short, and even empty, and not be the last. */
  readonly next: string | null
}

export type ResumeKeyResult =
  | { readonly resumed: true /** Of the message. */; readonly id: string }
  /** not_parked: nothing is parked there, or somebody else has resumed, skipped or discarded it this very moment. */
  | { readonly resumed: false; readonly because: 'not_parked' }

export type SkipKeyResult =
  | { readonly skipped: true /** Of the message. */; readonly id: string }
  /** As of `resume`. */
  | { readonly skipped: false; readonly because: 'not_parked' }

/** The keys of ordered queues that wait. Every call is a transaction of its own. */
export interface Keys {
  /**
   * First those that are parked, by key; then those that are retried, by the time of their next run: one that is run meanwhile may come twice, or not at all.
   * What a page costs does not grow with the number of keys, nor with that of messages.
   */
  list(options: KeyListOptions): Promise<KeyPage>
  /** Has the message that holds the key tried again, in its place, as if it never had been; the key goes on behind it. */
  resume(queue: string, key: string, options: KeyOptions): Promise<ResumeKeyResult>
  /** Lets the key go on without the message that holds it, which stays a dead letter. The next one that waits by then is told (`message.afterDead`). */
  skip(queue: string, key: string, options: KeyOptions): Promise<SkipKeyResult>
}

export interface KeysParts {
  readonly database: () => Database
  readonly outbox: Pick<Publishing, 'names' | 'wake'>
}

export function createKeys({ database, outbox: { names, wake } }: KeysParts): Keys {
  /** The database of one call. */
  const working = async <T>(work: (database: Database) => Promise<T>): Promise<T> => {
    try {
      return await work(database())
    } catch (error) {
      throw orSchemaMissing(error, names.messages)
    }
  }
  return Object.freeze({
    async list(options) {
      const query = resolveKeyList(options)
      return working(async (own) => pageOf(await own.run(listKeys(names, query)), query))
    },
    async resume(queue, key, options) {
      assertKeyDecision('resume', { queue, key, options })
      const id = await working((own) => {
        const input = { queue, key, by: options.by, historyLimit, wake: heardWake(wake, own) }
        return again(async () => idOf(await readCommitted(own, (tx) => tx.run(resumeKey(names, input)))))
      })
      return id === null ? { resumed: false, because: 'not_parked' } : { resumed: true, id }
    },
    async skip(queue, key, options) {
      assertKeyDecision('skip', { queue, key, options })
      const id = await working(async (own) => {
        const operation = crypto.randomUUID()
        const input = { queue, key, by: options.by, operation, wake: heardWake(wake, own) }
        return idOf(await readCommitted(own, (tx) => tx.run(skipKey(names, input))))
      })
      return id === null ? { skipped: false, because: 'not_parked' } : { skipped: true, id }
    },
  } satisfies Keys)
}

function idOf([row]: readonly { readonly id: string }[]): string | null {
  return row?.id ?? null
}

/** A timer of the same name that was armed meanwhile is found by the next try. */
async function again<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work()
    } catch (error) {
      if (sqlStateOf(error) !== sqlState.uniqueViolation || tries === mostReplayTries) throw error
    }
  }
}

/** One row more than the page holds tells that another page follows; and so does a look that ended before the last. */
function pageOf(
  rows: readonly KeyRow[],
  { queue, limit }: { readonly queue: string; readonly limit: number },
): KeyPage {
  const found = rows.filter(({ kind }) => kind === 'key')
  const shown = found.slice(0, limit)
  const last = found.length > limit ? shown.at(-1) : rows.find(({ kind }) => kind === 'place')
  return {
    items: shown.map((row) => blockedKey(queue, row)),
    next: last === undefined ? null : keyCursorText(cursorOf(last)),
  }
}

function cursorOf({ state, key, micros, seq }: KeyRow): KeyCursor {
  return state === 'parked' ? { state, key: key ?? '' } : { state, dueMicros: micros ?? '0', seq }
}

function blockedKey(queue: string, row: KeyRow): BlockedKey {
  const waiting = Number(row.waiting)
  return {
    queue,
    key: row.key ?? '',
    state: row.state,
    head: {
      id: row.id ?? '',
      seq: row.seq,
      attempts: Number(row.attempts),
      reason: row.reason as DeadReason | null,
      error: row.error,
      since: row.since === null ? null : dateFrom(row.since),
      dueAt: row.due === null ? null : dateFrom(row.due),
    },
    waiting: { count: Math.min(waiting, mostWaiting), atLeast: waiting > mostWaiting },
  }
}
