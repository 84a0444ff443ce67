// Path 1/7 · publish: drafts + the caller's transaction → rows. Never begins, commits or flushes anything of its own.
import type { Database, Executor, Handle } from './adapters/executor.ts'
import type { TimerName } from './cancel-timer.ts'
import { type BatchInput, makeBatch } from './core/batch.ts'
import { type DraftRules, makeDraft, type Publication } from './core/draft.ts'
import { OutboxError } from './core/errors.ts'
import type { Logger } from './core/log.ts'
import type { Draft, PendingMessage, Receipt } from './core/message.ts'
import type { Publishable, PublishRules, Receipts } from './core/middleware.ts'
import type { OnEvent } from './hear.ts'
import type { PendingOptions } from './pending.ts'
import { runStatement } from './run-statement.ts'
import { type InsertedRow, insertMessage } from './sql/insert-message.ts'
import type { Names } from './sql/names.ts'
import type { Statement } from './sql/statement.ts'
import { heardWake, type Wake } from './sql/wake.ts'
import type { Tell } from './tell-published.ts'
import { assertInside, runInside } from './transaction-guard.ts'

/** What publishing needs to know of its outbox. */
export interface Publishing extends DraftRules, PublishRules {
  readonly names: Names
  readonly wake: Wake
  /** The caller's handle, recognised; anything else is refused. */
  handleOf(tx: unknown): Handle
  readonly onEvent: OnEvent | undefined
  /** As it was given to createOutbox. */
  readonly logger: Logger | false | undefined
}

/** One message, one statement. null: a waiting timer of the same name was kept. */
export async function publish(
  outbox: Publishing,
  tx: unknown,
  publication: Publication,
): Promise<Receipt | null> {
  const handle = outbox.handleOf(tx)
  const wake = heardWake(outbox.wake, handle)
  return publishOne(outbox, publication, (draft, tell) =>
    runInside(handle, (mark) => {
      const statement = insertMessage(outbox.names, draft, { wake, mark })
      return insert(outbox, handle, { drafts: [draft], statement, tell })
    }),
  )
}

/** In a transaction of its own: one statement on a connection of ours is one. */
export async function publishNow(
  outbox: Publishing,
  database: Database,
  publication: Publication,
): Promise<Receipt | null> {
  const wake = heardWake(outbox.wake, database)
  return publishOne(outbox, publication, (draft, tell) => {
    const statement = insertMessage(outbox.names, draft, { wake, mark: null })
    return insert(outbox, database, { drafts: [draft], statement, tell })
  })
}

/** Any number of messages of one queue, one statement. Results stand in the order of the bodies. */
export async function publishMany(
  outbox: Publishing,
  tx: unknown,
  input: BatchInput,
): Promise<readonly (Receipt | null)[]> {
  const handle = outbox.handleOf(tx)
  const batching = makeBatch(outbox, input)
  // Read now, as the batch has: the caller may change the list while it is awaited.
  const bodies = Array.isArray(input.bodies) ? [...input.bodies] : []
  const [batch, { insertMessages }] = await Promise.all([batching, import('./sql/insert-messages.ts')])
  const wake = heardWake(outbox.wake, handle)
  return through(outbox, { ...batch, bodies }, async (drafts, tell) => {
    if (drafts.length === 0) return assertInside(handle).then(() => [])
    const rows = await runInside(handle, (mark) => {
      const statement = insertMessages(outbox.names, { ...batch, drafts }, { wake, mark })
      return insert(outbox, handle, { drafts, statement, tell })
    })
    const written = new Map(rows.map((row) => [row.id, receiptOf(row)]))
    return drafts.map((draft) => written.get(draft.id) ?? null)
  })
}

async function publishOne(
  outbox: Publishing,
  publication: Publication,
  write: (draft: Draft, tell: Tell | null) => Promise<readonly InsertedRow[]>,
): Promise<Receipt | null> {
  const { queue, body } = publication
  const checked = await makeDraft(outbox, publication)
  const publishable = { queue, bodies: [body], drafts: [checked] }
  const [receipt = null] = await through(outbox, publishable, async ([draft = checked], tell) => {
    const [row] = await write(draft, tell)
    return [row === undefined ? null : receiptOf(row)]
  })
  return receipt
}

/**
 * Through the middleware, and told of where somebody hears. What that takes is loaded when it is asked for, and before the handle is
 * asked whether it is in a transaction: nothing may come between that and the statement.
 */
async function through(
  outbox: Publishing,
  publishable: Publishable,
  write: (drafts: readonly Draft[], tell: Tell | null) => Promise<Receipts>,
): Promise<Receipts> {
  const tell = outbox.onEvent === undefined ? null : (await import('./tell-published.ts')).tellPublished
  if (outbox.middleware.every(({ publish }) => publish === undefined)) return write(publishable.drafts, tell)
  const { publishThrough } = await import('./core/middleware.ts')
  return publishThrough(outbox, publishable, (drafts) => write(drafts, tell))
}

/** True when this call deleted the waiting timer; final when the caller commits. */
export async function cancelTimer(outbox: Publishing, tx: unknown, timer: TimerName): Promise<boolean> {
  const handle = outbox.handleOf(tx)
  return (await import('./cancel-timer.ts')).cancelTimer(outbox, handle, timer)
}

/** What waits, as this transaction sees it. Nothing is claimed. */
export async function pending(
  outbox: Publishing,
  tx: unknown,
  options: PendingOptions | undefined,
): Promise<readonly PendingMessage[]> {
  const handle = outbox.handleOf(tx)
  return (await import('./pending.ts')).pending(outbox, handle, options)
}

interface Insert {
  readonly drafts: readonly Draft[]
  readonly statement: Statement<InsertedRow>
  /** null: nobody hears. */
  readonly tell: Tell | null
}

/** Runs the statement that writes them, and tells of it. */
async function insert(
  outbox: Publishing,
  executor: Executor,
  { drafts, statement, tell }: Insert,
): Promise<readonly InsertedRow[]> {
  const send = () => runStatement(outbox, executor, statement)
  const rows = await (tell === null ? send() : tell(outbox, drafts, send))
  if (executor.delivered) await executor.delivered()
  return rows
}

/** A row without these members was renamed on its way: by a `transform` of the client, or an own handle's `query`. */
function receiptOf({ id, seq }: InsertedRow): Receipt {
  if (id !== undefined && seq !== undefined) return { id, seq }
  const sentence =
    'the message was written, but the client renames the columns of its answer: its receipt cannot be read'
  throw new OutboxError('OUTBOX_UNKNOWN_HANDLE', sentence)
}
