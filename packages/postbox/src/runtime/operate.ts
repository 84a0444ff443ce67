import type { Database } from '../adapters/executor.ts'
import type { OperationProgress } from '../core/bulk-options.ts'
import { OutboxError } from '../core/errors.ts'
import { ignoreRejection } from '../core/ignore-rejection.ts'
import { mostRowsOfBatch, narrower, type OperationKind, wider } from '../core/operations.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { sqlState, sqlStateOf } from '../core/sql-state.ts'
import type { BatchRow } from '../sql/batch-of-operation.ts'
import { type LockedOperation, lockOperation } from '../sql/lock-operation.ts'
import type { Names } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import { readCommitted } from './read-committed.ts'

export interface OperationParts {
  readonly database: Database
  readonly names: Names
  readonly id: string
  readonly kind: OperationKind
  /** What to do next, by what is written of the operation: so whoever goes on does the same. */
  readonly batch: (operation: LockedOperation, size: number) => Statement<BatchRow>
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: OperationProgress) => void) | undefined
}

/**
 * Goes on with an operation until it is finished or cancelled, batch by batch, each in a transaction of its own: in it the rows are changed *and* the
 * operation's row tells so. Whatever happens between two batches, nothing is lost and nothing done twice; two that go on with the same operation take turns.
 */
export async function operate(parts: OperationParts): Promise<OperationProgress> {
  let size = mostRowsOfBatch
  let tries = 0
  let progress = await look(parts)
  tell(parts, progress)
  while (!progress.finished && !parts.signal?.aborted) {
    try {
      progress = await goOn(parts, size)
    } catch (error) {
      tries = size === 1 ? tries + 1 : 0
      if (!isInTheWay(error) || tries === mostTries) throw error
      size = narrower(size)
      continue
    }
    size = wider(size)
    tries = 0
    tell(parts, progress)
  }
  return progress
}

// A timer that was armed meanwhile is found by the second try; one that is armed and cancelled again and again, by no number of them.
const mostTries = 3

/**
 * Less than Postgres' deadlock_timeout, which is a second. A batch that writes the names of timers in its own order and a transaction that arms some of
 * them in another can wait for each other: then it is the batch that gives way, not somebody's business.
 */
const lockMs = 500

const inTheWay: readonly string[] = [
  sqlState.uniqueViolation,
  sqlState.lockNotAvailable,
  sqlState.deadlockDetected,
]

function isInTheWay(error: unknown): boolean {
  return inTheWay.includes(sqlStateOf(error) ?? '')
}

function look(parts: OperationParts): Promise<OperationProgress> {
  return readCommitted(parts.database, async (tx) => {
    const [found] = await tx.run(lockOperation(parts.names, { ...parts, lockMs: null }))
    return progressOf(parts, found ?? unknown(parts))
  })
}

function goOn(parts: OperationParts, size: number): Promise<OperationProgress> {
  const lock = { ...parts, lockMs: size === 1 ? null : lockMs }
  return readCommitted(parts.database, async (tx) => {
    const [found = unknown(parts)] = await tx.run(lockOperation(parts.names, lock))
    if (isFinished(found)) return progressOf(parts, found)
    const [row] = await tx.run(parts.batch(found, size))
    return progressOf(parts, row)
  })
}

function progressOf({ id }: OperationParts, row: BatchRow | undefined): OperationProgress {
  if (row?.finished !== 'true' && row?.finished !== 'false') {
    const sentence =
      'the client renames the columns of its answers: how far the operation has come cannot be read'
    throw new OutboxError('OUTBOX_UNKNOWN_HANDLE', sentence)
  }
  const { changed, conflicts } = row
  return { operation: id, changed: Number(changed), conflicts: Number(conflicts), finished: isFinished(row) }
}

function isFinished({ finished }: Pick<BatchRow, 'finished'>): boolean {
  return finished === 'true'
}

function unknown({ id, kind }: OperationParts): never {
  throw runtimeError('OUTBOX_UNKNOWN_OPERATION', `there is no ${kind} with the id ${id}`)
}

/** Who only watches must not break what he watches. */
function tell({ onProgress }: OperationParts, progress: OperationProgress): void {
  try {
    ignoreRejection(onProgress?.(progress))
  } catch {
    // Said so in the options.
  }
}
