// Path 1/7 · publish: drafts + the caller's transaction → rows. Never begins, commits or flushes anything of its own.
import type { Database, Executor, Handle } from './adapters/executor.ts'
import { recogniseHandle } from './adapters/recognise.ts'
import { type BatchInput, makeBatch } from './core/batch.ts'
import { type DraftRules, makeDraft, type Publication } from './core/draft.ts'
import { OutboxError } from './core/errors.ts'
import type { PendingMessage, Receipt } from './core/message.ts'
import { assertQueue } from './core/queue-name.ts'
import { sqlState, sqlStateOf } from './core/sql-state.ts'
import { anything, assertOptions, assertValue, name, wholeNumber } from './core/validate.ts'
import { cancelTimer as cancelTimerStatement } from './sql/cancel-timer.ts'
import { type InsertedRow, insertMessage, insertMessages } from './sql/insert-messages.ts'
import { markTransaction, readMark } from './sql/mark-transaction.ts'
import type { Names } from './sql/names.ts'
import { orSchemaMissing } from './sql/schema-missing.ts'
import type { Statement } from './sql/statement.ts'
import type { Wake } from './sql/wake.ts'

/** What publishing needs to know of its outbox. */
export interface Publishing extends DraftRules {
  readonly names: Names
  readonly wake: Wake
}

export interface PendingOptions {
  /** @default all queues */
  readonly queue?: string
  /** @default 1_000 */
  readonly limit?: number
}

/** One message, one statement. null: a waiting timer of the same name was kept. */
export async function publish(
  outbox: Publishing,
  tx: unknown,
  publication: Publication,
): Promise<Receipt | null> {
  const handle = recogniseHandle(tx)
  const draft = await makeDraft(outbox, publication)
  const wake = wakeOf(outbox, handle)
  const rows = await runInside(outbox, handle, (mark) => insertMessage(outbox.names, draft, { wake, mark }))
  return rows[0] === undefined ? null : receiptOf(rows[0])
}

/** Any number of messages of one queue, one statement. Results stand in the order of the bodies. */
export async function publishMany(
  outbox: Publishing,
  tx: unknown,
  input: BatchInput,
): Promise<readonly (Receipt | null)[]> {
  const handle = recogniseHandle(tx)
  const batch = await makeBatch(outbox, input)
  const wake = wakeOf(outbox, handle)
  if (batch.drafts.length === 0) return assertInside(handle).then(() => [])
  const rows = await runInside(outbox, handle, (mark) => insertMessages(outbox.names, batch, { wake, mark }))
  const written = new Map(rows.map((row) => [row.id, receiptOf(row)]))
  return batch.drafts.map((draft) => written.get(draft.id) ?? null)
}

/** In a transaction of its own: one statement on a connection of ours is one. */
export async function publishNow(
  outbox: Publishing,
  database: Database,
  publication: Publication,
): Promise<Receipt | null> {
  const draft = await makeDraft(outbox, publication)
  const rows = await run(
    outbox,
    database,
    insertMessage(outbox.names, draft, { wake: wakeOf(outbox, database), mark: null }),
  )
  return rows[0] === undefined ? null : receiptOf(rows[0])
}

/** True when this call deleted the waiting timer; final when the caller commits. */
export async function cancelTimer(
  outbox: Publishing,
  tx: unknown,
  { queue, timerId }: { readonly queue: string; readonly timerId: string },
): Promise<boolean> {
  const handle = recogniseHandle(tx)
  assertQueue(queue, outbox.queues)
  assertValue('OUTBOX_INVALID_OPTION', { label: 'timerId', check: name(1024), value: timerId })
  const cancel = (mark: string | null) => cancelTimerStatement(outbox.names, { queue, timerId, mark })
  const rows = await runInside(outbox, handle, cancel)
  return rows.length > 0
}

/** What waits, as this transaction sees it. Nothing is claimed. */
export async function pending(
  outbox: Publishing,
  tx: unknown,
  options: PendingOptions | undefined,
): Promise<readonly PendingMessage[]> {
  const handle = recogniseHandle(tx)
  if (options?.queue !== undefined) assertQueue(options.queue, outbox.queues)
  assertOptions(options, { queue: anything, limit: wholeNumber(1, 100_000) }, 'the options of pending')
  const { queue = null, limit = 1_000 } = options ?? {}
  // For dashboards and tests: a service that only publishes does not carry it.
  const [{ peekPending }, { pendingMessage }] = await Promise.all([
    import('./sql/peek-pending.ts'),
    import('./pending.ts'),
  ])
  const rows = await runInside(outbox, handle, (mark) => peekPending(outbox.names, { queue, limit, mark }))
  return rows.map((row) => pendingMessage(outbox, row))
}

// The same for all: messages published at once on one connection must not take each other's mark for the end of the transaction.
const mark = 'open'

/**
 * Runs a statement in the caller's transaction, or refuses: outside one the message would be committed on its own, whatever becomes of
 * the caller's rows. The handle is asked and the statement sent without a pause between, so that nothing can come between. Where the
 * handle cannot tell, the statement itself finds out by a mark, which costs one more round trip.
 */
async function runInside<Row>(
  outbox: Publishing,
  handle: Handle,
  make: (mark: string | null) => Statement<Row>,
): Promise<readonly Row[]> {
  const state = handle.transactionState()
  if (state.inside === false) throw notInTransaction(handle, state.because)
  if (state.inside === true) return run(outbox, handle, make(null))
  await markOpen(handle)
  const rows = await run(outbox, handle, make(mark))
  if (rows.length === 0) await assertMarked(handle)
  return rows
}

/** The check alone, for an empty batch. */
async function assertInside(handle: Handle): Promise<void> {
  const state = handle.transactionState()
  if (state.inside === false) throw notInTransaction(handle, state.because)
  if (state.inside === true) return
  await markOpen(handle)
  await assertMarked(handle)
}

/** In a transaction that has failed, the mark fails first: nothing else is sent. */
async function markOpen(handle: Handle): Promise<void> {
  try {
    await handle.run(markTransaction(mark))
  } catch (error) {
    if (sqlStateOf(error) !== sqlState.failedTransaction) throw error
    throw notInTransaction(handle, 'its transaction has already failed: ROLLBACK first')
  }
}

async function assertMarked(handle: Handle): Promise<void> {
  const [row] = await handle.run(readMark(mark))
  if (row?.inside !== 'true') throw notInTransaction(handle, 'no transaction is open on this connection')
}

/** Only the database can fail here: the input was checked. Tables that were never made are the commonest reason. */
async function run<Row>(
  outbox: Publishing,
  executor: Executor,
  statement: Statement<Row>,
): Promise<readonly Row[]> {
  try {
    return await executor.run(statement)
  } catch (error) {
    throw orSchemaMissing(error, outbox.names.messages)
  }
}

function notInTransaction(handle: Handle, because: string): OutboxError {
  const sentence = `the ${handle.client} handle is not inside a transaction: ${because}`
  return new OutboxError('OUTBOX_NOT_IN_TRANSACTION', sentence)
}

function wakeOf(outbox: Publishing, handle: { readonly singleSession: boolean }): Wake {
  return outbox.wake === 'quiet' && handle.singleSession ? 'always' : outbox.wake
}

/** A row without these members was renamed on its way: by a `transform` of the client, or an own handle's `query`. */
function receiptOf({ id, seq }: InsertedRow): Receipt {
  if (id !== undefined && seq !== undefined) return { id, seq }
  const sentence =
    'the message was written, but the client renames the columns of its answer: its receipt cannot be read'
  throw new OutboxError('OUTBOX_UNKNOWN_HANDLE', sentence)
}
