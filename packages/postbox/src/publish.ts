// Path 1/7 · publish: drafts + the caller's transaction → rows. Never begins, commits or flushes anything of its own.
import type { Database, Executor, Handle } from './adapters/executor.ts'
import { recogniseHandle } from './adapters/recognise.ts'
import { type BatchInput, makeBatch } from './core/batch.ts'
import { type DraftRules, makeDraft, type Publication } from './core/draft.ts'
import { OutboxError } from './core/errors.ts'
import type { Draft, PendingMessage, Receipt } from './core/message.ts'
import { assertQueue } from './core/queue-name.ts'
import { sqlState, sqlStateOf } from './core/sql-state.ts'
import { assertOptions, assertValue, name, wholeNumber } from './core/validate.ts'
import { pendingMessage } from './pending.ts'
import { cancelTimer as cancelTimerStatement } from './sql/cancel-timer.ts'
import { type InsertedRow, insertMessage, insertMessages } from './sql/insert-messages.ts'
import { lockForPublishing } from './sql/lock-for-publishing.ts'
import type { Names } from './sql/names.ts'
import { peekPending } from './sql/peek-pending.ts'
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
  await assertInTransaction(outbox, handle)
  return insertOne(outbox, handle, draft)
}

/** Any number of messages of one queue, one statement. Results stand in the order of the bodies. */
export async function publishMany(
  outbox: Publishing,
  tx: unknown,
  input: BatchInput,
): Promise<readonly (Receipt | null)[]> {
  const handle = recogniseHandle(tx)
  const batch = await makeBatch(outbox, input)
  await assertInTransaction(outbox, handle)
  if (batch.drafts.length === 0) return []
  const rows = await handle.run(insertMessages(outbox.names, batch, wakeOf(outbox, handle)))
  const written = new Map(rows.map((row) => [row.id, receiptOf(row)]))
  return batch.drafts.map((draft) => written.get(draft.id) ?? null)
}

/** In a transaction of its own: one statement on a connection of ours is one. */
export async function publishNow(
  outbox: Publishing,
  database: Database,
  publication: Publication,
): Promise<Receipt | null> {
  return insertOne(outbox, database, await makeDraft(outbox, publication))
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
  await assertInTransaction(outbox, handle)
  const rows = await handle.run(cancelTimerStatement(outbox.names, queue, timerId))
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
  assertOptions(options, { queue: () => null, limit: wholeNumber(1, 100_000) }, 'the options of pending')
  await assertInTransaction(outbox, handle)
  const rows = await handle.run(peekPending(outbox.names, options?.queue ?? null, options?.limit ?? 1_000))
  return rows.map((row) => pendingMessage(outbox, row))
}

async function insertOne(
  outbox: Publishing,
  handle: Executor & { readonly singleSession: boolean },
  draft: Draft,
): Promise<Receipt | null> {
  const rows = await handle.run(insertMessage(outbox.names, draft, wakeOf(outbox, handle)))
  return rows[0] === undefined ? null : receiptOf(rows[0])
}

/**
 * Refuses a handle that is not inside a transaction: the message would be committed on its own, whatever becomes of the
 * caller's rows. Free where the handle can tell; otherwise one more round trip asks Postgres.
 */
async function assertInTransaction(outbox: Publishing, handle: Handle): Promise<void> {
  const state = handle.transactionState()
  if (state.inside === true) return
  if (state.inside === false) throw notInTransaction(handle, state.because)
  try {
    await handle.run(lockForPublishing(outbox.names))
  } catch (error) {
    if (sqlStateOf(error) !== sqlState.noActiveTransaction) throw error
    throw notInTransaction(handle, 'no transaction is open on this connection', error)
  }
}

function notInTransaction(handle: Handle, because: string, cause?: unknown): OutboxError {
  const sentence = `the ${handle.client} handle is not inside a transaction: ${because}`
  return new OutboxError('OUTBOX_NOT_IN_TRANSACTION', sentence, cause === undefined ? undefined : { cause })
}

function wakeOf(outbox: Publishing, handle: { readonly singleSession: boolean }): Wake {
  return outbox.wake === 'quiet' && handle.singleSession ? 'always' : outbox.wake
}

function receiptOf(row: InsertedRow): Receipt {
  return { id: row.id, seq: row.seq }
}
