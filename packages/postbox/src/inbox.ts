import type { Database, Handle } from './adapters/executor.ts'
import type { TransactionLike } from './adapters/transaction-like.ts'
import { OutboxError } from './core/errors.ts'
import { nextLookMs, type OnceOptions, type OnceQuery, resolveOnce } from './core/inbox-options.ts'
import { type PurgeOptions, resolvePurge } from './core/purge-options.ts'
import { name } from './core/validate.ts'
import { systemClock } from './runtime/clock.ts'
import { purgeAll } from './runtime/purge.ts'
import type { Internals } from './runtime/works.ts'
import { forgetHandled } from './sql/forget-handled.ts'
import { type HandledAnswer, markHandled } from './sql/mark-handled.ts'
import type { Names } from './sql/names.ts'
import { purgeHandled } from './sql/purge-handled.ts'
import { orSchemaMissing } from './sql/schema-missing.ts'
import { runInside } from './transaction-guard.ts'
import type { Publishing } from './write.ts'

/** What became of `once`: the work has run, or why not. */
export type OnceResult<T> =
  | { readonly ran: true; readonly value: T }
  | {
      readonly ran: false
      /**
       * duplicate: it was handled before, and that is committed (or done in this very transaction): acknowledge it. busy: somebody handles it this very moment,
       * and may yet fail: do not acknowledge it, let it come again.
       */
      readonly because: 'duplicate' | 'busy'
    }

export interface InboxPurgeOptions extends PurgeOptions {
  /** Only what this consumer has handled. @default that of all */
  readonly consumer?: string | undefined
}

/** Which messages were handled, kept beside the effects of handling them. */
export interface Inbox {
  /**
   * Runs `work` in your transaction, unless this consumer has handled this id before. That it has is written in the same transaction: the
   * effects and the memory of them are committed together, or neither. When `work` throws, so does this, and the id counts as not handled, even
   * if you commit. Whoever handles the same id in an open transaction is waited for, `lockMs` at most.
   *
   * @example
   * const handled = await outbox.inbox.once(tx, { consumer: 'billing', id: message.id }, () => tx.query('insert into invoices …'))
   * if (!handled.ran && handled.because === 'busy') throw new Error('it comes again')
   */
  once<H, T>(tx: TransactionLike<H>, message: OnceOptions, work: () => T | Promise<T>): Promise<OnceResult<T>>
  /**
   * Forgets what was handled longer ago than that, in batches. An id that comes again afterwards is handled again: keep it for longer
   * than anything may deliver, redeliver or replay it.
   */
  purge(options: InboxPurgeOptions): Promise<{ readonly purged: number }>
}

export interface InboxParts {
  readonly database: () => Database
  readonly outbox: Pick<Publishing, 'names' | 'handleOf'>
  readonly internals: () => Internals | undefined
}

export function createInbox({ database, outbox, internals }: InboxParts): Inbox {
  const { names } = outbox
  return {
    async once<T>(tx: unknown, message: OnceOptions, work: () => T | Promise<T>): Promise<OnceResult<T>> {
      const handle = outbox.handleOf(tx)
      const query = resolveOnce(message, work)
      const answer = await untilFree(internals(), query, () => mark({ names, handle }, query))
      if (answer !== 'marked') return { ran: false, because: answer }
      try {
        return { ran: true, value: await work() }
      } catch (error) {
        await forget({ names, handle }, query)
        throw error
      }
    },
    async purge(options) {
      const { olderThanMs, signal } = resolvePurge(options, { consumer: name(255) })
      const { consumer = null } = options
      const batch = (limit: number) => purgeHandled(names, { olderThanMs, consumer, limit })
      return purgeAll(database(), batch, { signal }).catch((error) => {
        throw orSchemaMissing(error, names.handled)
      })
    },
  }
}

type Answer = HandledAnswer['answer']

interface Place {
  readonly names: Names
  readonly handle: Handle
}

const never = new AbortController().signal

/** Looks again and again while somebody else has it, until the time is over. */
async function untilFree(
  { clock = systemClock, nextEnd = () => never }: Pick<Internals, 'clock' | 'nextEnd'> = {},
  { lockMs }: OnceQuery,
  look: () => Promise<Answer>,
): Promise<Answer> {
  const startedAt = clock.now()
  for (let looks = 1; ; looks++) {
    // Asked for before the look: who ends between the two is not missed.
    const ended = nextEnd()
    const answer = await look()
    const waitMs = answer === 'busy' ? nextLookMs(looks, lockMs - (clock.now() - startedAt)) : null
    if (waitMs === null) return answer
    await clock.sleep(waitMs, ended)
  }
}

async function mark({ names, handle }: Place, { consumer, id }: OnceQuery): Promise<Answer> {
  const [row] = await runInside(handle, (mark) =>
    handle.run(markHandled(names, { consumer, id, mark })),
  ).catch((error) => {
    throw orSchemaMissing(error, names.handled)
  })
  if (row?.answer !== undefined) return row.answer
  const sentence =
    'the client renames the columns of its answers: whether the message was handled cannot be read'
  throw new OutboxError('OUTBOX_UNKNOWN_HANDLE', sentence)
}

/** Where it fails, the transaction has failed, and its commit will be a rollback: the work's own error is the one to tell. */
async function forget({ names, handle }: Place, { consumer, id }: OnceQuery): Promise<void> {
  await runInside(handle, (mark) => handle.run(forgetHandled(names, { consumer, id, mark }))).catch(() => {})
}
