import type { Handle } from './adapters/executor.ts'
import { batchOf } from './core/batch.ts'
import type { Draft } from './core/message.ts'
import { type Publishable, publishThrough, type Receipts } from './core/middleware.ts'
import { insertMessages } from './sql/insert-messages.ts'
import { heardWake } from './sql/wake.ts'
import { type Tell, tellPublished } from './tell-published.ts'
import { assertInside, runInside } from './transaction-guard.ts'
import { insert, type Publishing, receiptOf } from './write.ts'

/** Publishes drafts of one queue by one statement. Results stand in the order of the drafts. */
export async function publishDrafts(
  outbox: Publishing,
  handle: Handle,
  publishable: Publishable,
): Promise<Receipts> {
  const batch = batchOf(publishable.queue, publishable.drafts)
  const wake = heardWake(outbox.wake, handle)
  return through(outbox, publishable, async (drafts, tell) => {
    if (drafts.length === 0) return assertInside(handle).then(() => [])
    const rows = await runInside(handle, (mark) => {
      const statement = insertMessages(outbox.names, { ...batch, drafts }, { wake, mark })
      return insert(outbox, handle, { drafts, statement, tell })
    })
    const receipts = rows.map(receiptOf)
    if (receipts.length === drafts.length) return receipts
    const written = new Map(receipts.map((receipt) => [receipt.id, receipt]))
    return drafts.map((draft) => written.get(draft.id) ?? null)
  })
}

/** Through the middleware, and told of where somebody hears. */
export async function through(
  outbox: Publishing,
  publishable: Publishable,
  write: (drafts: readonly Draft[], tell: Tell | null) => Promise<Receipts>,
): Promise<Receipts> {
  const tell = outbox.onEvent === undefined ? null : tellPublished
  return publishThrough(outbox, publishable, (drafts) => write(drafts, tell))
}
