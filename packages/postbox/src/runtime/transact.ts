import type { Executor } from '../adapters/executor.ts'
import type { Decision } from '../core/decision.ts'
import { LeaseLostError } from '../core/errors.ts'
import { isOutcomeUnknown } from '../core/failed-statement.ts'
import { TerminalError } from '../core/terminal-error.ts'
import {
  type FencedRow,
  fenceTransaction,
  readTransaction,
  restorePatience,
} from '../sql/fence-transaction.ts'
import type { Failpoint } from './failpoint.ts'
import { resolveCommit, untilEnded } from './resolve-commit.ts'
import { statementOf } from './settle-statements.ts'
import type { Progress, Transacted, Transaction, TransactionRun, TransactParts } from './transaction-run.ts'
import { Unresolved, watched } from './watch-transaction.ts'

/**
 * Runs the work in one transaction with the end of its messages: fence, work, follow-ons, delete, commit. So its effects are there exactly once: who has
 * lost the lease is stopped by the fence before any work, and who dies in between leaves nothing behind.
 *
 * Rejects with what the work threw, or with what the database said, and then nothing is committed. Whether a COMMIT landed whose answer was lost is asked, not
 * guessed. Resolves as well when the work has decided for something else than an acknowledgement: that is done in place of a commit.
 */
export async function transact<T>(transaction: Transaction<T>, parts: TransactParts): Promise<T> {
  const { members, signal } = transaction
  if (signal.aborted) throw signal.reason
  const progress: Progress<T> = {
    ...{ executor: null, hasBegun: false, fenced: null, done: null },
    onDone: () => {},
  }
  const run = { transaction, progress, parts }
  const before = members.map(({ followOns }) => followOns)
  try {
    const value = await watched(commitOf(run), run)
    conclude(run)
    return value
  } catch (error) {
    try {
      if (error instanceof Declined) return decline(run, error)
      return await afterFailure(error, run)
    } finally {
      letGo(members, before)
    }
  }
}

/** Those that it has not ended are as they were before: renewed, free to publish, and what was said or published inside is forgotten. */
function letGo(members: readonly Transacted[], before: readonly Transacted['followOns'][]): void {
  for (const [index, member] of members.entries()) {
    if (isEnded(member.decision)) continue
    member.isSealed = false
    member.held.isFenced = false
    member.followOns = before[index] ?? []
    member.decision.takeBackAck()
  }
}

function isEnded({ outcome }: Decision): boolean {
  return outcome?.kind === 'committed' || outcome?.kind === 'unresolved'
}

/** The handler has decided for something else: rolled back, and no failure. */
class Declined {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

function isDeclined({ outcome }: Decision): boolean {
  return outcome !== null && outcome.kind !== 'ack'
}

/** Of a batch, what was done for the others is gone, too: they are given back, and come again without the one that was declined. */
function decline<T>({ transaction: { members } }: TransactionRun<T>, { value }: Declined): T {
  for (const { decision } of members) if (!isDeclined(decision)) decision.conclude({ kind: 'interrupt' })
  return value as T
}

async function commitOf<T>({ transaction, progress, parts }: TransactionRun<T>): Promise<T> {
  const { failpoint } = parts
  const opener = await parts.open()
  const value = await opener.transaction(async (executor, tx) => {
    progress.done = null
    progress.executor = executor
    progress.hasBegun = true
    try {
      return await workAndEnd(tx, executor, { transaction, progress, parts })
    } finally {
      // From here on it is the client's to end, and then the connection may be anybody's.
      progress.executor = null
      // By then the client has sent its COMMIT.
      if (failpoint && progress.done !== null) setImmediate(() => void failpoint.reach('commit_sent'))
    }
  })
  return value
}

async function workAndEnd<T>(tx: unknown, executor: Executor, run: TransactionRun<T>): Promise<T> {
  const { progress, parts } = run
  const { members, signal, work } = run.transaction
  const reach: Failpoint['reach'] = async (name) => parts.failpoint?.reach(name)
  signal.throwIfAborted()
  progress.fenced = await fence(members, executor, parts)
  await reach('transaction_fenced')
  signal.throwIfAborted()
  const value = await work(tx)
  await reach('transaction_worked')
  if (members.some(({ decision }) => isDeclined(decision))) throw new Declined(value)
  const followOns = await end(run, executor)
  await reach('before_commit')
  signal.throwIfAborted()
  progress.done = { value, followOns }
  progress.onDone()
  return value
}

async function fence(
  members: readonly Transacted[],
  executor: Executor,
  { rules }: TransactParts,
): Promise<FencedRow | null> {
  const leases = members.map(({ held }) => held.lease)
  const rows = await executor.run(fenceTransaction(rules.names, leases))
  assertAll(members, rows)
  // Not before: who waits for a connection is protected by nothing but his lease.
  for (const { held } of members) held.isFenced = true
  return rows[0] ?? null
}

/** Deletes the messages, and inserts what they publish. Returns how many each of them did. */
async function end<T>(
  { transaction: { members }, progress, parts: { rules } }: TransactionRun<T>,
  executor: Executor,
): Promise<readonly number[]> {
  await assertInside(executor, progress.fenced)
  for (const member of members) member.isSealed = true
  const drafts = await Promise.all(members.map(({ followOns }) => Promise.all(followOns)))
  const entries = members.map(({ held }, index) => {
    const followOns = (drafts[index] ?? []).filter((draft) => draft !== null)
    return {
      settlement: { write: 'delete', lease: held.lease, followOns },
      maxBatch: 0,
      refusals: 0,
    } as const
  })
  const published = entries.map(({ settlement }) => settlement.followOns.length)
  const kind = published.some((count) => count > 0) ? 'follow' : 'delete'
  assertAll(members, await executor.run(statementOf({ kind, isNamed: false, entries }, rules)))
  // A timer that is armed, or a message in the order of its key, makes the transaction impatient: what COMMIT waits for is the application's.
  const isImpatient = drafts
    .flat()
    .some((draft) => draft !== null && (draft.timerId !== null || draft.isOrdered))
  if (isImpatient && progress.fenced !== null) await executor.run(restorePatience(progress.fenced.patience))
  return published
}

/** Work that commits or rolls back by itself has made another transaction of the rest: what it did, and the end of its message, are no longer one. */
async function assertInside(executor: Executor, fenced: FencedRow | null): Promise<void> {
  const [row] = await executor.run(readTransaction)
  if (row?.xid !== fenced?.xid) throw endedByWork()
}

/** Terminal: each other run would do as much, or as little. */
function endedByWork(): TerminalError {
  return new TerminalError(
    'the work of context.transaction has ended its transaction by itself (a COMMIT or ROLLBACK of its own): leave that to the outbox',
  )
}

function assertAll(members: readonly Transacted[], rows: readonly { readonly seq: string }[]): void {
  const seqs = new Set(rows.map(({ seq }) => seq))
  const lost = members.find(({ held }) => !seqs.has(held.lease.seq))
  if (lost === undefined) return
  const { id, queue } = lost.held.lease
  throw new LeaseLostError(`the lease on message ${id} of "${queue}" was lost before its transaction`)
}

async function afterFailure<T>(error: unknown, run: TransactionRun<T>): Promise<T> {
  const { done, fenced } = run.progress
  const { signal } = run.transaction
  if (error instanceof Unresolved) return leaveOpen(error, run)
  if (done === null || fenced === null) {
    const cause = signal.aborted ? signal.reason : error
    // Its locks may outlive it: of a statement whose connection broke, or below a savepoint. No write may wait for that, and everybody behind it.
    const mayLive = fenced !== null && (signal.aborted || isOutcomeUnknown(error))
    const status = mayLive ? await untilEnded(fenced, run.parts) : null
    if (status === 'in progress') return leaveOpen(new Unresolved(cause, false), run)
    throw status === 'committed' ? endedByWork() : cause
  }
  if (!isOutcomeUnknown(error)) throw error
  const status = await resolveCommit(fenced.xid, run.parts)
  if (status === 'unknown') return leaveOpen(new Unresolved(error, true), run)
  if (status !== 'committed') throw error
  conclude(run)
  return done.value
}

function conclude<T>({ transaction: { members }, progress: { done } }: TransactionRun<T>): void {
  for (const [index, member] of members.entries()) {
    member.isSealed = true
    member.decision.conclude({ kind: 'committed', followOns: done?.followOns[index] ?? 0 })
  }
}

function leaveOpen<T>({ cause, mayHaveLanded }: Unresolved, { transaction }: TransactionRun<T>): never {
  for (const { decision } of transaction.members) decision.conclude({ kind: 'unresolved', mayHaveLanded })
  throw cause
}
