// outbox.inbox: transactions of every client, and what comes back.
import type { InboxPurgeOptions, OnceOptions, OnceResult } from 'postbox'
import { expectTypeOf } from 'vitest'
import { outbox, pglite, pgliteTransaction, pool, poolClient, sql, sqlTransaction } from './shop.ts'

const message = { consumer: 'billing', id: 'order-1' }

const handled = await outbox.inbox.once(poolClient, message, async () => 7)
expectTypeOf(handled).toEqualTypeOf<OnceResult<number>>()
if (handled.ran) expectTypeOf(handled.value).toEqualTypeOf<number>()
else expectTypeOf(handled.because).toEqualTypeOf<'duplicate' | 'busy'>()
// @ts-expect-error: not before it is known that the work has run
handled.value

expectTypeOf(outbox.inbox.once(sqlTransaction, message, () => 'at once')).resolves.toEqualTypeOf<
  OnceResult<string>
>()
expectTypeOf(outbox.inbox.once(pgliteTransaction, message, () => {})).resolves.toEqualTypeOf<
  OnceResult<void>
>()
await outbox.inbox.once({ query: async () => [], inTransaction: true }, { ...message, lockMs: 0 }, () => {})

// @ts-expect-error: a pool is no transaction
await outbox.inbox.once(pool, message, () => {})
// @ts-expect-error: the client is no transaction
await outbox.inbox.once(sql, message, () => {})
// @ts-expect-error: the instance is no transaction
await outbox.inbox.once(pglite, message, () => {})
// @ts-expect-error: who handles it?
await outbox.inbox.once(poolClient, { id: 'order-1' }, () => {})
// @ts-expect-error: an id is a text
await outbox.inbox.once(poolClient, { ...message, id: 7 }, () => {})
// @ts-expect-error: a misspelt option
await outbox.inbox.once(poolClient, { ...message, lockMS: 5 }, () => {})
// @ts-expect-error: what was begun already cannot be left out
await outbox.inbox.once(poolClient, message, Promise.resolve())

expectTypeOf(outbox.inbox.purge({ olderThanMs: 1 })).resolves.toEqualTypeOf<{ readonly purged: number }>()
await outbox.inbox.purge({ olderThanMs: 1, consumer: 'billing', signal: new AbortController().signal })
// @ts-expect-error: everything would be forgotten
await outbox.inbox.purge()
// @ts-expect-error: everything would be forgotten
await outbox.inbox.purge({ consumer: 'billing' })
expectTypeOf<InboxPurgeOptions>().toExtend<object>()
expectTypeOf<OnceOptions>().toExtend<object>()
