import type { Executor, Handle } from './adapters/executor.ts'
import type { DraftRules } from './core/draft.ts'
import { OutboxError } from './core/errors.ts'
import type { Logger } from './core/log.ts'
import type { Draft, Receipt } from './core/message.ts'
import type { PublishRules } from './core/middleware.ts'
import type { OnEvent } from './hear.ts'
import { runStatement } from './run-statement.ts'
import { eachRow, type InsertedRow } from './sql/insert-plain.ts'
import type { Names } from './sql/names.ts'
import type { Statement } from './sql/statement.ts'
import type { Wake } from './sql/wake.ts'
import type { Tell } from './tell-published.ts'

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

interface Insert {
  readonly drafts: readonly Draft[]
  readonly statement: Statement<InsertedRow>
  /** null: nobody hears. */
  readonly tell: Tell | null
}

/** Runs the statement that writes them, and tells of it. */
export async function insert(
  outbox: Publishing,
  executor: Executor,
  { drafts, statement, tell }: Insert,
): Promise<readonly Receipt[]> {
  const send = async () => eachRow(await runStatement(outbox, executor, statement), drafts)
  const rows = await (tell === null ? send() : tell(outbox, drafts, send))
  if (executor.delivered) await executor.delivered()
  return rows
}

/** A row without this member was renamed on its way: by a `transform` of the client, or an own handle's `query`. */
export function receiptOf(written: Receipt): Receipt {
  if (written.seq !== undefined) return written
  const sentence = 'the message was written, but the client renames the columns of its answer'
  throw new OutboxError('OUTBOX_UNKNOWN_HANDLE', sentence)
}
