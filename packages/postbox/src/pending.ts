import type { Handle } from './adapters/executor.ts'
import type { BodyRules } from './core/body-rules.ts'
import type { PendingMessage } from './core/message.ts'
import { assertQueue } from './core/queue-name.ts'
import { anything, assertOptions, wholeNumber } from './core/validate.ts'
import { runStatement } from './run-statement.ts'
import { dateFrom } from './sql/columns.ts'
import type { Names } from './sql/names.ts'
import { type PendingRow, peekPending } from './sql/peek-pending.ts'
import { storedMessage } from './stored-message.ts'
import { runInside } from './transaction-guard.ts'

export interface PendingOptions {
  /** @default all queues */
  readonly queue?: string
  /** @default 1_000 */
  readonly limit?: number
}

/** For dashboards and tests: a service that only publishes does not carry it. */
export async function pending(
  outbox: BodyRules & { readonly names: Names },
  handle: Handle,
  options: PendingOptions | undefined,
): Promise<readonly PendingMessage[]> {
  if (options?.queue !== undefined) assertQueue(options.queue, outbox.queues)
  assertOptions(options, { queue: anything, limit: wholeNumber(1, 100_000) }, 'the options of pending')
  const { queue = null, limit = 1_000 } = options ?? {}
  const rows = await runInside(handle, (mark) =>
    runStatement(outbox, handle, peekPending(outbox.names, { queue, limit, mark })),
  )
  return rows.map((row) => pendingMessage(outbox, row))
}

/** A waiting row as `pending` shows it. */
export function pendingMessage(rules: BodyRules, row: PendingRow): PendingMessage {
  return {
    ...storedMessage(rules, row),
    seq: row.seq,
    dueAt: row.due === null ? null : dateFrom(row.due),
    inFlight: row.leased === 'true',
  }
}
