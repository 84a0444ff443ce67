// createOutbox, its life, and the errors it throws.
import type {
  BoundedCount,
  DeadEvent,
  DeadLetter,
  DeadLetterPage,
  DeadReason,
  Delivery,
  Drained,
  ErrorCode,
  Health,
  LogEntry,
  Middleware,
  OutboxEvent,
  OutboxOptions,
  OwnDatabase,
  PublishCall,
  Receipt,
  ReplayResult,
  Running,
  Stats,
} from 'postbox'
import { createOutbox, LeaseLostError, OutboxError, shutdownSignal } from 'postbox'
import { expectTypeOf } from 'vitest'
import { outbox, pglite, pgliteTransaction, pool, poolClient, sql, sqlTransaction } from './shop.ts'

// Every client's own database, one's own, or none.
declare const own: OwnDatabase
createOutbox()
createOutbox({})
createOutbox({ database: pool })
createOutbox({ database: sql })
createOutbox({ database: pglite })
createOutbox({ database: own })
createOutbox({ database: { pool } })
createOutbox({ database: { pool, listen: sql } })
createOutbox({
  database: pool,
  schema: 'shop',
  table: 'outbox',
  names: { dead: 'outbox_dead', handled: 'outbox_handled', queues: 'outbox_queues', meta: 'outbox_meta' },
  wake: 'always',
  generation: 1,
  codec: { contentType: 'text/plain', encode: () => new Uint8Array(), decode: () => '' },
  maxBodyBytes: 1_024,
  defaults: { concurrency: 2 },
  logger: (entry) => expectTypeOf(entry).toEqualTypeOf<LogEntry>(),
  stopTimeoutMs: 1_000,
})
createOutbox({ logger: false })
createOutbox({
  deadLetters: 'discard',
  source: 'shop',
  describeError: (error) => {
    expectTypeOf(error).toEqualTypeOf<unknown>()
    return error instanceof Error ? error.message : null
  },
  middleware: [
    {
      publish: async (call, next) => {
        expectTypeOf(call).toEqualTypeOf<PublishCall>()
        expectTypeOf(await next()).toEqualTypeOf<readonly (Receipt | null)[]>()
        return next({ traceparent: '00' })
      },
      consume: async (delivery, next) => {
        expectTypeOf(delivery).toEqualTypeOf<Delivery>()
        expectTypeOf(await next()).toEqualTypeOf<void>()
      },
    },
    { publish: async ({ bodies }) => bodies.map(() => null) },
    {},
  ],
  onEvent: (event) => {
    expectTypeOf(event).toEqualTypeOf<OutboxEvent>()
    if (event.kind === 'dead') expectTypeOf(event).toEqualTypeOf<DeadEvent>()
    if (event.kind === 'dead') expectTypeOf(event.reason).toEqualTypeOf<DeadReason>()
    // @ts-expect-error: only some kinds have it
    event.delayMs
  },
})
createOutbox({ onEvent: async () => {} })

// @ts-expect-error: one of two
createOutbox({ deadLetters: 'nowhere' })
// @ts-expect-error: a name
createOutbox({ source: 7 })
// @ts-expect-error: a text or null
createOutbox({ describeError: () => undefined })
// @ts-expect-error: a list of them
createOutbox({ middleware: { publish: async () => [] } })
// @ts-expect-error: a misspelt member
createOutbox({ middleware: [{ publsh: async () => [] }] })
// @ts-expect-error: receipts, for each body
createOutbox({ middleware: [{ publish: async () => 'published' }] })
// @ts-expect-error: headers are texts
createOutbox({ middleware: [{ publish: (_, next) => next({ attempt: 1 }) }] })
declare const call: PublishCall
// @ts-expect-error: the queue cannot be changed
call.queue = 'other'
// @ts-expect-error: nor can what is published
call.bodies[0] = {}
// @ts-expect-error: the handler's messages are its own
createOutbox({ middleware: [{ consume: (_, next) => next({ traceparent: '00' }) }] })
expectTypeOf<Middleware>().toExtend<Required<OutboxOptions>['middleware'][number]>()
// @ts-expect-error: a connection string is no database
createOutbox({ database: 'postgres://localhost/shop' })
// @ts-expect-error: a single client is no database
createOutbox({ database: poolClient })
// @ts-expect-error: a transaction is no database
createOutbox({ database: sqlTransaction })
// @ts-expect-error: a transaction is no database
createOutbox({ database: pgliteTransaction })
// @ts-expect-error: a single client cannot be listened on: it is the caller's, and may end
createOutbox({ database: { pool, listen: poolClient } })
// @ts-expect-error: members of the wrong type
createOutbox({ database: { query: 1, transaction: 2 } })
// @ts-expect-error: leave `database` out instead
createOutbox({ database: undefined })
// @ts-expect-error: leave `database` out instead
createOutbox({ database: null })
// @ts-expect-error: a misspelt option
createOutbox({ databse: pool })
// @ts-expect-error: a misspelt option beside right ones
createOutbox({ database: pool, queues: { orders: {} }, tabel: 'outbox' })
// @ts-expect-error: a misspelt option of the subscribers
createOutbox({ defaults: { concurency: 3 } })
// @ts-expect-error: one of three
createOutbox({ wake: 'loud' })
// @ts-expect-error: a function or false
createOutbox({ logger: true })
declare const options: OutboxOptions
// @ts-expect-error: read-only
options.table = 'outbox'

// Its life.
expectTypeOf(outbox.migrate()).resolves.toEqualTypeOf<void>()
expectTypeOf(outbox.schemaSql({ autovacuum: { threshold: 1_000 } })).resolves.toEqualTypeOf<string>()
expectTypeOf(outbox.schemaSql({ autovacuum: false })).resolves.toEqualTypeOf<string>()
expectTypeOf(outbox.start()).resolves.toEqualTypeOf<Running>()
expectTypeOf(outbox.run({ signal: shutdownSignal('SIGTERM', 'SIGINT') })).resolves.toEqualTypeOf<void>()
expectTypeOf<Running>().toExtend<AsyncDisposable>()
expectTypeOf(outbox.drain({ deadlineMs: 1_000 })).resolves.toEqualTypeOf<Drained>()
expectTypeOf(outbox.health()).toEqualTypeOf<Health>()
expectTypeOf(outbox.ping({ timeoutMs: 1_000 })).resolves.toEqualTypeOf<boolean>()
expectTypeOf(outbox.stats()).resolves.toEqualTypeOf<Stats>()
// @ts-expect-error: a misspelt option
await outbox.drain({ deadline: 1_000 })
// @ts-expect-error: a signal the system does not have
shutdownSignal('SIGTREM')
// @ts-expect-error: a misspelt option
await outbox.run({ signall: AbortSignal.timeout(1) })

// Dead letters.
expectTypeOf(outbox.deadLetters.list({ queue: 'orders', limit: 10 })).resolves.toEqualTypeOf<DeadLetterPage>()
expectTypeOf(outbox.deadLetters.get('id')).resolves.toEqualTypeOf<DeadLetter | null>()
expectTypeOf(outbox.deadLetters.count()).resolves.toEqualTypeOf<BoundedCount>()
expectTypeOf(outbox.deadLetters.replay('id', { by: 'ann' })).resolves.toEqualTypeOf<ReplayResult>()
// @ts-expect-error: who did it?
await outbox.deadLetters.replay('id')
// @ts-expect-error: a misspelt option
await outbox.deadLetters.list({ qeue: 'orders' })
// @ts-expect-error: read-only
outbox.deadLetters = createOutbox().deadLetters

// Errors.
expectTypeOf<LeaseLostError>().toExtend<OutboxError>()
expectTypeOf(new LeaseLostError('lost').code).toExtend<ErrorCode>()
declare const error: unknown
// @ts-expect-error: nothing is known of it yet
error.code
if (OutboxError.is(error)) {
  expectTypeOf(error).toEqualTypeOf<OutboxError>()
  expectTypeOf(error.code).toEqualTypeOf<ErrorCode>()
  expectTypeOf(error.hint).toEqualTypeOf<string>()
  // @ts-expect-error: read-only
  error.code = 'OUTBOX_NO_DATABASE'
}
if (OutboxError.is(error, 'OUTBOX_NO_DATABASE')) expectTypeOf(error.code).toExtend<ErrorCode>()
// @ts-expect-error: there is no such code
OutboxError.is(error, 'OUTBOX_NO_DATABSE')
expectTypeOf<ErrorCode>().toExtend<`OUTBOX_${string}`>()
expectTypeOf<'OUTBOX_NOT_IN_TRANSACTION'>().toExtend<ErrorCode>()
expectTypeOf<`OUTBOX_${string}`>().not.toExtend<ErrorCode>()
