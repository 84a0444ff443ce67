// What operators do to many dead letters at once, and what they leave behind to be audited and resumed.
import type { Database } from './adapters/executor.ts'
import {
  assertDiscard,
  assertResume,
  type DiscardOptions,
  type OperationListOptions,
  type OperationProgress,
  type ReplayAllOptions,
  type ResumeOptions,
  resolveDiscard,
  resolveOperationList,
  resolveReplayAll,
} from './core/bulk-options.ts'
import { assertMessageId, type DeadLetterFilter, type DeadLetterQuery } from './core/dead-letter-options.ts'
import { historyLimit } from './core/failure-history.ts'
import { operationCursorText } from './core/operation-cursor.ts'
import {
  type DeadLetterOperation,
  filterFrom,
  givenSettingsFrom,
  type OperationKind,
  placeFrom,
  queryFrom,
  settingsFrom,
  storedFilter,
  storedSettings,
} from './core/operations.ts'
import { type Purged, type PurgeOptions, resolvePurge } from './core/purge-options.ts'
import type { DeadReason } from './core/settlement.ts'
import { operate } from './runtime/operate.ts'
import { purgeAll } from './runtime/purge.ts'
import { readCommitted } from './runtime/read-committed.ts'
import type { BoundedCount } from './runtime/stats.ts'
import type { BatchRow } from './sql/batch-of-operation.ts'
import { dateFrom } from './sql/columns.ts'
import type { DeadLetterRow } from './sql/dead-letters.ts'
import { discardDeadLetter } from './sql/discard-dead-letter.ts'
import { discardDeadLetters } from './sql/discard-dead-letters.ts'
import { forgetOperation } from './sql/forget-operation.ts'
import { listOperations, type OperationRow } from './sql/list-operations.ts'
import type { LockedOperation } from './sql/lock-operation.ts'
import type { Names } from './sql/names.ts'
import type { Stretch } from './sql/oldest-dead-letters.ts'
import { purgeDeadLetters } from './sql/purge-dead-letters.ts'
import { replayDeadLetters } from './sql/replay-dead-letters.ts'
import { sampleDeadLetters } from './sql/sample-dead-letters.ts'
import { orSchemaMissing } from './sql/schema-missing.ts'
import { startOperation } from './sql/start-operation.ts'
import type { Statement } from './sql/statement.ts'
import { surveyDeadLetters } from './sql/survey-dead-letters.ts'
import { heardWake, type Wake } from './sql/wake.ts'

/** What a dry run has found. Nothing was written, and no more than ten thousand and one dead letters were looked at. */
export interface ReplayAllPreview<Letter> {
  readonly dryRun: true
  /** How many the filter means, whatever the limit. */
  readonly matched: BoundedCount
  /** The most first; of more than ten thousand, of those that were looked at. */
  readonly groups: readonly DeadLetterGroup[]
  /** The ten oldest: those that would be replayed first. */
  readonly sample: readonly Letter[]
}

export interface DeadLetterGroup {
  readonly queue: string
  readonly reason: DeadReason
  readonly count: number
}

export interface ReplayAllOutcome {
  readonly dryRun: false
  /** The id of the operation, for `resume`. */
  readonly operation: string
  /** In the operation's whole life, those before a resume included. */
  readonly replayed: number
  /** Those that stay dead because a timer of their name waits, or was replayed before them. */
  readonly conflicts: number
  /** False when it was cancelled: `resume` goes on. */
  readonly finished: boolean
}

export interface DiscardResult {
  readonly discarded: number
  /** What `operations` tells of it; null: there was nothing to discard. */
  readonly operation: string | null
  /** False when it was cancelled. What is left is discarded by discarding again. */
  readonly finished: boolean
}

export interface OperationPage {
  readonly items: readonly DeadLetterOperation[]
  /** Where the next page begins, for `after`; null: this was the last. */
  readonly next: string | null
}

/** The part of `DeadLetters` that works in batches: each is a transaction of its own, of some hundred rows. */
export interface DeadLetterOperations<Letter> {
  /**
   * Replays all that the filter means and that have failed by now, the oldest first, in batches. What dies again meanwhile stays dead, and what
   * others are replaying is theirs. Rejected, it can be resumed: `operations` has its id.
   */
  replayAll(
    filter: DeadLetterFilter,
    options: ReplayAllOptions & { readonly dryRun: true },
  ): Promise<ReplayAllPreview<Letter>>
  replayAll(
    filter: DeadLetterFilter,
    options: ReplayAllOptions & { readonly dryRun?: false | undefined },
  ): Promise<ReplayAllOutcome>
  replayAll(
    filter: DeadLetterFilter,
    options: ReplayAllOptions,
  ): Promise<ReplayAllPreview<Letter> | ReplayAllOutcome>
  /** Goes on with a `replayAll` that was cancelled or broke off, by its own filter, pace and limit. One that is finished stays as it is. */
  resume(operation: string, options: ResumeOptions): Promise<ReplayAllOutcome>
  /** Who replayed and discarded what, newest first. */
  operations(options?: OperationListOptions): Promise<OperationPage>
  /**
   * Deletes the newest of an id, or all that a filter means and that have failed by now. Nobody gets them back. The key that one held goes on if it was named by its
   * id; by a filter, those that hold a key are left alone.
   */
  discard(which: string | DeadLetterFilter, options: DiscardOptions): Promise<DiscardResult>
  /** Deletes what failed long ago, the oldest first, and writes down nothing: for a job that runs every night. Those that hold a key are left alone. */
  purge(options: PurgeOptions): Promise<Purged>
}

export interface DeadLetterOperationsParts<Letter> {
  readonly database: () => Database
  readonly names: Names
  readonly wake: Wake
  /** Where a dry run stops counting. */
  readonly countBound: number
  readonly show: (row: DeadLetterRow) => Letter
}

export function createDeadLetterOperations<Letter>(
  parts: DeadLetterOperationsParts<Letter>,
): DeadLetterOperations<Letter> {
  const { names } = parts
  /** The database of one call. */
  const working = async <T>(work: (database: Database) => Promise<T>): Promise<T> => {
    try {
      return await work(parts.database())
    } catch (error) {
      throw orSchemaMissing(error, names.operations)
    }
  }
  const replayAll = async (filter: DeadLetterFilter, options: ReplayAllOptions): Promise<unknown> => {
    const { query, by, isDryRun, settings } = resolveReplayAll(filter, options)
    if (isDryRun) return working((database) => preview(database, parts, query))
    const stored = { by, filter: storedFilter(query), settings: storedSettings(settings) }
    return working(async (database) => {
      const id = await start(database, names, { kind: 'replay', ...stored })
      return goOn(database, parts, { ...options, id })
    })
  }
  return {
    replayAll: replayAll as DeadLetterOperations<Letter>['replayAll'],
    async resume(operation, options) {
      assertResume(operation, options)
      return working((database) => goOn(database, parts, { ...options, id: operation.toLowerCase() }))
    },
    async operations(options) {
      const page = resolveOperationList(options)
      return working(async (database) => pageOf(await database.run(listOperations(names, page)), page.limit))
    },
    async discard(which, options) {
      if (typeof which === 'string') {
        assertMessageId(which)
        assertDiscard(options)
        return working((database) => discardOne(database, parts, { id: which, by: options.by }))
      }
      const query = resolveDiscard(which, options)
      return working((database) => discardAll(database, names, { ...options, query }))
    },
    async purge(options) {
      const resolved = resolvePurge(options)
      return working((database) => purge(database, names, resolved))
    },
  }
}

async function preview<Letter>(
  database: Database,
  { names, countBound, show }: DeadLetterOperationsParts<Letter>,
  query: DeadLetterQuery,
): Promise<ReplayAllPreview<Letter>> {
  const rows = await database.run(surveyDeadLetters(names, { query, bound: countBound }))
  const groups = rows.map(({ queue, reason, count }) => ({
    queue,
    reason: reason as DeadReason,
    count: Number(count),
  }))
  const seen = groups.reduce((sum, { count }) => sum + count, 0)
  const oldest = await database.run(sampleDeadLetters(names, { query, limit: 10 }))
  const matched = { count: Math.min(seen, countBound), atLeast: seen > countBound }
  return { dryRun: true, matched, groups, sample: oldest.map(show) }
}

interface Started {
  readonly kind: OperationKind
  readonly by: string
  readonly filter: Readonly<Record<string, unknown>>
  readonly settings: Readonly<Record<string, unknown>>
}

async function start(database: Database, names: Names, started: Started): Promise<string> {
  const id = crypto.randomUUID()
  await database.run(startOperation(names, { id, ...started }))
  return id
}

async function goOn(
  database: Database,
  { names, wake }: Pick<DeadLetterOperationsParts<unknown>, 'names' | 'wake'>,
  { id, by, signal, onProgress }: ResumeOptions & { readonly id: string },
): Promise<ReplayAllOutcome> {
  const heard = heardWake(wake, database)
  const batch = (operation: LockedOperation, size: number): Statement<BatchRow> => {
    const settings = settingsFrom(operation.settings)
    const left = settings.limit === null ? size : settings.limit - Number(operation.changed)
    const chosen = { operation: id, stretch: stretchOf(operation), size: Math.min(size, left) }
    return replayDeadLetters(names, { ...chosen, by, settings, historyLimit, wake: heard })
  }
  const done = await operate({ database, names, id, kind: 'replay', batch, signal, onProgress })
  return outcomeOf(done)
}

/** Only what had failed when the operation began: a message that dies again would be replayed in circles. */
function stretchOf({ filter, place, started }: LockedOperation): Stretch {
  return { query: queryFrom(filter), after: placeFrom(place), beforeMicros: started }
}

function outcomeOf({ operation, changed, conflicts, finished }: OperationProgress): ReplayAllOutcome {
  return { dryRun: false, operation, replayed: changed, conflicts, finished }
}

async function discardOne(
  database: Database,
  { names, wake }: Pick<DeadLetterOperationsParts<unknown>, 'names' | 'wake'>,
  which: { readonly id: string; readonly by: string },
): Promise<DiscardResult> {
  const operation = crypto.randomUUID()
  const discard = { ...which, operation, wake: heardWake(wake, database) }
  const rows = await readCommitted(database, (tx) => tx.run(discardDeadLetter(names, discard)))
  const discarded = rows.length
  return { discarded, operation: discarded === 0 ? null : operation, finished: true }
}

async function discardAll(
  database: Database,
  names: Names,
  { query, by, signal, onProgress }: DiscardOptions & { readonly query: DeadLetterQuery },
): Promise<DiscardResult> {
  const id = await start(database, names, { kind: 'discard', by, filter: storedFilter(query), settings: {} })
  const batch = (operation: LockedOperation, size: number) =>
    discardDeadLetters(names, {
      operation: id,
      stretch: { ...stretchOf(operation), sparesParked: true },
      size,
    })
  const { changed, finished } = await operate({
    ...{ database, names, id, kind: 'discard', batch, signal, onProgress },
  })
  if (changed > 0) return { discarded: changed, operation: id, finished }
  await database.run(forgetOperation(names, id))
  return { discarded: 0, operation: null, finished }
}

async function purge(database: Database, names: Names, options: PurgeOptions): Promise<Purged> {
  const { olderThanMs } = options
  let all = 0
  for (const place of ['moved', 'quarantined'] as const) {
    const batch = (limit: number) => purgeDeadLetters(names, { place, olderThanMs, limit })
    const { purged } = await purgeAll(database, batch, options)
    all += purged
  }
  return { purged: all }
}

/** One row more than the page holds tells that another page follows. */
function pageOf(rows: readonly OperationRow[], limit: number): OperationPage {
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  return {
    items: shown.map(operationOf),
    next: last === undefined ? null : operationCursorText({ startedMicros: last.micros, id: last.id }),
  }
}

function operationOf(row: OperationRow): DeadLetterOperation {
  return {
    id: row.id,
    kind: row.kind as OperationKind,
    by: row.by,
    filter: filterFrom(row.filter),
    settings: givenSettingsFrom(row.settings),
    startedAt: dateFrom(row.started),
    updatedAt: dateFrom(row.updated),
    finishedAt: row.finished === null ? null : dateFrom(row.finished),
    changed: Number(row.changed),
    conflicts: Number(row.conflicts),
  }
}
