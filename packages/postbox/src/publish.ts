// Path 1/7 · publish: drafts + the caller's transaction → rows. Never begins, commits or flushes anything of its own.
import type { Database } from './adapters/executor.ts'
import type { TimerName } from './cancel-timer.ts'
import { makeDraft, type Publication } from './core/draft.ts'
import { type BatchInput, makeDrafts } from './core/drafts.ts'
import type { Draft, PendingMessage, Receipt } from './core/message.ts'
import type { Receipts } from './core/middleware.ts'
import type { PendingOptions } from './pending.ts'
import { insertPlain } from './sql/insert-plain.ts'
import { heardWake } from './sql/wake.ts'
import type { Tell } from './tell-published.ts'
import { runInside } from './transaction-guard.ts'
import { insert, type Publishing, receiptOf } from './write.ts'

/** One message, one statement. null: a waiting timer of the same name was kept. */
export async function publish(
  outbox: Publishing,
  tx: unknown,
  publication: Publication,
): Promise<Receipt | null> {
  const handle = outbox.handleOf(tx)
  const wake = heardWake(outbox.wake, handle)
  return publishOne(outbox, publication, (draft, tell) =>
    inserting(draft).then((insertion) =>
      runInside(handle, (mark) => {
        const statement = insertion(outbox.names, draft, { wake, mark })
        return insert(outbox, handle, { drafts: [draft], statement, tell })
      }),
    ),
  )
}

/** In a transaction of its own: one statement on a connection of ours is one. */
export async function publishNow(
  outbox: Publishing,
  database: Database,
  publication: Publication,
): Promise<Receipt | null> {
  const wake = heardWake(outbox.wake, database)
  return publishOne(outbox, publication, async (draft, tell) => {
    const statement = (await inserting(draft))(outbox.names, draft, { wake, mark: null })
    return insert(outbox, database, { drafts: [draft], statement, tell })
  })
}

/** How one message is inserted: in an ordered queue as a batch of one, which has the lock of its key first; as a timer, with care for its name. */
async function inserting({ isOrdered, conflict }: Draft): Promise<typeof insertPlain> {
  if (!isOrdered && conflict === 'none') return insertPlain
  const { insertMessage, insertOne } = await import('./on-demand.ts')
  return isOrdered ? insertOne : insertMessage
}

/** Any number of messages of one queue, one statement. Results stand in the order of the bodies. */
export async function publishMany(
  outbox: Publishing,
  tx: unknown,
  input: BatchInput,
): Promise<readonly (Receipt | null)[]> {
  const handle = outbox.handleOf(tx)
  const drafting = makeDrafts(outbox, input)
  // Read now, as the drafts have: the caller may change the list while it is awaited.
  const { queue } = input
  const bodies = Array.isArray(input.bodies) ? [...input.bodies] : []
  const [drafts, { publishDrafts }] = await Promise.all([drafting, import('./on-demand.ts')])
  return publishDrafts(outbox, handle, { queue, bodies, drafts })
}

/**
 * Where nothing wraps publishing and nobody hears of it, the message is written; what else it takes is loaded then, and before the handle is
 * asked whether it is in a transaction: nothing may come between that and the statement.
 */
async function publishOne(
  outbox: Publishing,
  publication: Publication,
  write: (draft: Draft, tell: Tell | null) => Promise<readonly Receipt[]>,
): Promise<Receipt | null> {
  const { queue, body } = publication
  const checked = await makeDraft(outbox, publication)
  const writeOne = async ([draft = checked]: readonly Draft[], tell: Tell | null): Promise<Receipts> => {
    const [row] = await write(draft, tell)
    return [row === undefined ? null : receiptOf(row)]
  }
  const isAlone =
    outbox.onEvent === undefined && outbox.middleware.every(({ publish }) => publish === undefined)
  const publishing = isAlone
    ? writeOne([checked], null)
    : (await import('./on-demand.ts')).through(outbox, { queue, bodies: [body], drafts: [checked] }, writeOne)
  return (await publishing)[0] ?? null
}

/** True when this call deleted the waiting timer; final when the caller commits. */
export async function cancelTimer(outbox: Publishing, tx: unknown, timer: TimerName): Promise<boolean> {
  const handle = outbox.handleOf(tx)
  return (await import('./on-demand.ts')).cancelTimer(outbox, handle, timer)
}

/** What waits, as this transaction sees it. Nothing is claimed. */
export async function pending(
  outbox: Publishing,
  tx: unknown,
  options: PendingOptions | undefined,
): Promise<readonly PendingMessage[]> {
  const handle = outbox.handleOf(tx)
  return (await import('./on-demand.ts')).pending(outbox, handle, options)
}
