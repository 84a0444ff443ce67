// The transaction that handlers get: whose it is follows from `orm`, else from `database`.
import type { Transaction as PGliteTransaction } from '@electric-sql/pglite'
import type { Transaction as KyselyTransaction } from 'kysely'
import type { Client, Pool, PoolClient } from 'pg'
import {
  type BodiesOf,
  type Context,
  createOutbox,
  type DatabaseLike,
  defineSubscriber,
  type HandlerOf,
  type Outbox,
  type OutboxOptions,
  type OwnDatabase,
  type OwnHandle,
  type TransactionOf,
} from 'postbox'
import { createTestOutbox, type TestOutboxOf } from 'postbox/testing'
import type { Sql, TransactionSql } from 'postgres'
import { expectTypeOf } from 'vitest'
import {
  type drizzlePGlite,
  drizzlePg,
  type drizzlePostgresJs,
  kysely,
  pglite,
  pool,
  queues,
  type Schema,
  type outbox as shop,
  sql,
  type Tables,
} from './shop.ts'

type Shop = BodiesOf<typeof queues>

// Of each client, as its own users know it.
expectTypeOf<TransactionOf<Pool>>().toEqualTypeOf<PoolClient>()
class OwnPool extends (null as unknown as typeof Pool) {}
expectTypeOf<TransactionOf<OwnPool>>().toEqualTypeOf<PoolClient>()
interface OldPool {
  readonly totalCount: number
  connect(): Promise<Client>
  query(text: string): unknown
}
expectTypeOf<TransactionOf<OldPool>>().toEqualTypeOf<Client>()
expectTypeOf<TransactionOf<typeof sql>>().toEqualTypeOf<TransactionSql>()
expectTypeOf<TransactionOf<Sql<{ bigint: bigint }>>>().toEqualTypeOf<TransactionSql<{ bigint: bigint }>>()
expectTypeOf<TransactionOf<typeof pglite>>().toEqualTypeOf<PGliteTransaction>()
expectTypeOf<TransactionOf<OwnDatabase>>().toEqualTypeOf<Pick<OwnHandle, 'query'>>()
expectTypeOf<TransactionOf<{ pool: Pool; listen: Sql }>>().toEqualTypeOf<PoolClient>()
type MyTransaction = OwnHandle & { readonly tenant: string }
interface MyDatabase {
  query(text: string, values: readonly unknown[]): Promise<unknown[]>
  transaction<T>(work: (tx: MyTransaction) => Promise<T>): Promise<T>
}
expectTypeOf<TransactionOf<MyDatabase>>().toEqualTypeOf<MyTransaction>()
expectTypeOf<TransactionOf<Pool | Sql>>().toEqualTypeOf<PoolClient | TransactionSql>()

// Of an ORM: with the schema that it was made for.
type Given<Db extends { transaction(work: never): unknown }> = Parameters<Parameters<Db['transaction']>[0]>[0]
expectTypeOf<TransactionOf<typeof drizzlePg>>().toEqualTypeOf<Given<typeof drizzlePg>>()
expectTypeOf<TransactionOf<typeof drizzlePostgresJs>>().toEqualTypeOf<Given<typeof drizzlePostgresJs>>()
expectTypeOf<TransactionOf<typeof drizzlePGlite>>().toEqualTypeOf<Given<typeof drizzlePGlite>>()
expectTypeOf<TransactionOf<typeof drizzlePg>['_']['fullSchema']>().toEqualTypeOf<Schema>()
expectTypeOf<TransactionOf<typeof kysely>>().toEqualTypeOf<KyselyTransaction<Tables>>()

// Where types do not tell.
expectTypeOf<TransactionOf<undefined>>().toEqualTypeOf<unknown>()
expectTypeOf<TransactionOf<{ find(): void }>>().toEqualTypeOf<unknown>()
expectTypeOf<TransactionOf<DatabaseLike>>().toEqualTypeOf<unknown>()
// biome-ignore lint/suspicious/noExplicitAny: untyped code has databases, too
expectTypeOf<TransactionOf<any>>().toEqualTypeOf<unknown>()

// createOutbox: `orm` goes before `database`.
const typed = <B extends object, Tx>(_: Outbox<B & Shop, Tx>): Tx => null as never
expectTypeOf(createOutbox({ database: pool, queues })).toEqualTypeOf<Outbox<Shop, PoolClient>>()
expectTypeOf(createOutbox({ database: { pool }, queues })).toEqualTypeOf<Outbox<Shop, PoolClient>>()
expectTypeOf(createOutbox({ database: sql, queues })).toEqualTypeOf<Outbox<Shop, TransactionSql>>()
expectTypeOf(createOutbox({ database: pglite, queues })).toEqualTypeOf<Outbox<Shop, PGliteTransaction>>()
expectTypeOf(createOutbox({ queues })).toEqualTypeOf<Outbox<Shop>>()
expectTypeOf(createOutbox({ database: pool, orm: kysely, queues })).toEqualTypeOf<
  Outbox<Shop, KyselyTransaction<Tables>>
>()
expectTypeOf(createOutbox({ database: pool, orm: drizzlePg, queues })).toEqualTypeOf<
  Outbox<Shop, Given<typeof drizzlePg>>
>()
expectTypeOf(createOutbox({ database: pool, orm: sql, queues })).toEqualTypeOf<Outbox<Shop, TransactionSql>>()
declare const options: OutboxOptions<typeof queues>
expectTypeOf(createOutbox(options)).toEqualTypeOf<Outbox<Shop>>()
expectTypeOf(createOutbox<typeof queues>({ database: pool, orm: kysely })).toEqualTypeOf<Outbox<Shop>>()
expectTypeOf(typed(createOutbox({ database: pool, queues }))).toEqualTypeOf<PoolClient>()
// @ts-expect-error: neither an ORM nor a database
createOutbox({ database: pool, orm: 'drizzle' })
// @ts-expect-error: a builder of transactions
createOutbox({ database: pool, orm: kysely.transaction() })
// @ts-expect-error: leave `orm` out instead
createOutbox({ database: pool, orm: null })

// Handlers know it, and those who do not care about it fit everywhere.
const withKysely = createOutbox({ database: pool, orm: kysely, queues })
type Kept = Context<Shop, KyselyTransaction<Tables>>
withKysely.subscribe('orders', (_, context) => expectTypeOf(context).toEqualTypeOf<Kept>())
withKysely.subscribe(['orders', 'emails'], (_, context) => expectTypeOf(context).toEqualTypeOf<Kept>())
withKysely.subscribe('orders', (_, context: Context<Shop>) => context.ack())
withKysely.subscribe('orders', (_, context: Context) => context.ack())
// @ts-expect-error: a handler of another client's transactions
withKysely.subscribe('orders', (_, context: Context<Shop, PoolClient>) => context.ack())
const ship: HandlerOf<typeof withKysely, 'orders'> = (_, context) => {
  expectTypeOf(context).toEqualTypeOf<Kept>()
}
withKysely.subscribe('orders', ship)
expectTypeOf<typeof shop>().toExtend<Outbox<Shop>>()
expectTypeOf<typeof withKysely>().toExtend<Outbox<Shop>>()
expectTypeOf<typeof withKysely>().not.toExtend<Outbox<Shop, PoolClient>>()

// A subscriber apart from its outbox says which transactions it works in, or nothing of them.
const anywhere = defineSubscriber(queues, 'orders', (_, context) => {
  expectTypeOf(context).toEqualTypeOf<Context<Shop>>()
})
const onPg = defineSubscriber(queues, 'orders', (_, context: Context<Shop, PoolClient>) => context.ack())
declare const onPool: typeof shop
onPool.subscribe([anywhere, onPg])
withKysely.subscribe(anywhere)
// @ts-expect-error: it works in transactions of pg
withKysely.subscribe(onPg)
// @ts-expect-error: nothing is known of the transactions of this one
createOutbox({ queues }).subscribe(onPg)

// The test kit has the same types as the outbox that it took over.
const test = await createTestOutbox(withKysely)
expectTypeOf(test.outbox).toEqualTypeOf<typeof withKysely>()
expectTypeOf(test).toEqualTypeOf<TestOutboxOf<typeof withKysely>>()
