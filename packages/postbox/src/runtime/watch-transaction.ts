import { runtimeError } from '../core/runtime-errors.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { cancelTransaction, doomTransaction, type FencedRow } from '../sql/fence-transaction.ts'
import type { Clock } from './clock.ts'
import { resolveCommit } from './resolve-commit.ts'
import type { Progress, TransactionRun, TransactParts } from './transaction-run.ts'

/** It cannot be found out whether the transaction has ended, or how: nothing may be written for its messages. */
export class Unresolved {
  readonly cause: unknown
  readonly mayHaveLanded: boolean

  constructor(cause: unknown, mayHaveLanded: boolean) {
    this.cause = cause
    this.mayHaveLanded = mayHaveLanded
  }
}

// Some clients refuse by themselves to send two statements at once: then a little later.
const pauseMs = 20
const cancelMs = 500

/**
 * The answer of the client, unless it does not come. A transaction whose delivery is told to give up is made to fail, and its work is not waited for;
 * one whose COMMIT is not answered is asked after.
 */
export async function watched<T>(committed: Promise<T>, run: TransactionRun<T>): Promise<T> {
  const { signal } = run.transaction
  const over = new AbortController()
  const watching = { ...run, over: over.signal }
  const given = new Promise<never>((_, reject) => {
    const told = (): void => void doom(watching).catch(reject)
    signal.addEventListener('abort', told, { once: true })
    over.signal.addEventListener('abort', () => signal.removeEventListener('abort', told), { once: true })
  })
  try {
    return await Promise.race([committed, given, unanswered(watching)])
  } finally {
    over.abort()
  }
}

interface Watching<T> extends TransactionRun<T> {
  /** Aborted: the client has answered. */
  readonly over: AbortSignal
}

const never = <T>(): Promise<T> => new Promise(() => {})

/**
 * Ends a transaction in the middle of its work: whatever statement it is at is cancelled, and one of ours fails behind it. Not by a ROLLBACK of the client's: work
 * that does not listen to its signal would go on outside of it, and each of its statements would be committed by itself. Rejects when that is done.
 */
async function doom<T>({ progress, parts, transaction, over }: Watching<T>): Promise<never> {
  const { clock, lane, statementTimeoutMs } = parts
  const { reason } = transaction.signal
  if (progress.done !== null) return never()
  // It has not begun, and will not: its first step looks at the signal.
  if (!progress.hasBegun) throw reason
  const late = clock.sleep(statementTimeoutMs, over).then(() => true)
  const { fenced } = progress
  // Where there is one session for everybody, this is answered when all is over.
  const cancelled = fenced === null ? null : lane.run(cancelTransaction(fenced)).catch(() => {})
  if (fenced !== null) void cancelAgain(fenced, parts, over)
  await Promise.race([cancelled, clock.sleep(pauseMs, over)])
  const isLate = await Promise.race([untilRefused(progress, clock, over).then(() => false), late])
  throw isLate ? new Unresolved(reason, false) : reason
}

/** A statement that was on its way when it was first cancelled has begun since. */
async function cancelAgain(
  fenced: FencedRow,
  { lane, clock }: Pick<TransactParts, 'lane' | 'clock'>,
  over: AbortSignal,
): Promise<void> {
  for (;;) {
    await clock.sleep(cancelMs, over)
    if (over.aborted) return
    await lane.run(cancelTransaction(fenced)).catch(() => {})
  }
}

/** Until the server has refused something of ours. Once the client ends the transaction by itself, it is the client that tells. */
async function untilRefused<T>(progress: Progress<T>, clock: Clock, over: AbortSignal): Promise<void> {
  while (progress.executor !== null && !over.aborted) {
    const state = await progress.executor.run(doomTransaction).then(() => null, sqlStateOf)
    if (state !== null) return
    await clock.sleep(pauseMs, over)
  }
  await never()
}

/** A COMMIT that nobody answers, for as long as a statement may take, or when the time of the delivery is over. */
async function unanswered<T>({ progress, parts, transaction, over }: Watching<T>): Promise<T> {
  await new Promise<void>((resolve) => {
    progress.onDone = resolve
  })
  const { clock, statementTimeoutMs } = parts
  await clock.sleep(statementTimeoutMs, AbortSignal.any([over, transaction.signal]))
  const { done, fenced } = progress
  if (over.aborted || done === null || fenced === null) return never()
  const sentence = `COMMIT took longer than ${statementTimeoutMs} ms`
  const error = transaction.signal.aborted
    ? transaction.signal.reason
    : runtimeError('OUTBOX_STATEMENT_TIMEOUT', sentence)
  const status = await resolveCommit(fenced.xid, parts)
  if (status === 'unknown') throw new Unresolved(error, true)
  if (status === 'aborted') throw error
  return done.value
}
