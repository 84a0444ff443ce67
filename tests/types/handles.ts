// The first argument: every client's own transaction as it is, and nothing that cannot be one.
import type { Pool, PoolClient } from 'pg'
import type { OwnHandle } from 'postbox'
import type { Sql, TransactionSql } from 'postgres'
import {
  client,
  clientBase,
  controlledTransaction,
  drizzlePGlite,
  drizzlePg,
  drizzlePostgresJs,
  kysely,
  kyselyTransaction,
  outbox,
  pglite,
  pgliteTransaction,
  pool,
  poolClient,
  sql,
  sqlTransaction,
} from './shop.ts'

const order = { orderId: 1 }

// pg
await outbox.publish(client, 'orders', order)
await outbox.publish(clientBase, 'orders', order)
await outbox.publish(poolClient, 'orders', order)
await outbox.publish(await pool.connect(), 'orders', order)

// postgres.js: the handle of `begin`, of a savepoint, with types of one's own
await outbox.publish(sqlTransaction, 'orders', order)
await sql.begin((tx) => outbox.publish(tx, 'orders', order))
await sql.begin('isolation level serializable', (tx) => outbox.publish(tx, 'orders', order))
await sql.begin((tx) => tx.savepoint((savepoint) => outbox.publish(savepoint, 'orders', order)))
await outbox.publish(await sql.reserve(), 'orders', order)
declare const sqlWithTypes: Sql<{ bigint: bigint }>
await sqlWithTypes.begin((tx) => outbox.publish(tx, 'orders', order))

// PGlite
await outbox.publish(pgliteTransaction, 'orders', order)
await pglite.transaction((tx) => outbox.publish(tx, 'orders', order))

// Drizzle, on each of its drivers: the handle of `transaction`, nested too
await drizzlePg.transaction((tx) => outbox.publish(tx, 'orders', order))
await drizzlePg.transaction((tx) => tx.transaction((inner) => outbox.publish(inner, 'orders', order)))
await drizzlePostgresJs.transaction((tx) => outbox.publish(tx, 'orders', order))
await drizzlePGlite.transaction((tx) => outbox.publish(tx, 'orders', order))

// Kysely: a transaction, a controlled one, its savepoints
await kysely.transaction().execute((tx) => outbox.publish(tx, 'orders', order))
await outbox.publish(kyselyTransaction.withSchema('shop'), 'orders', order)
await outbox.publish(controlledTransaction, 'orders', order)
await outbox.publish(await controlledTransaction.savepoint('here').execute(), 'orders', order)

// Any other client, wrapped; `any`; either of two transactions
declare const own: OwnHandle
await outbox.publish(own, 'orders', order)
await outbox.publish({ query: async () => [], inTransaction: true }, 'orders', order)
await outbox.publish({ query: own.query, inTransaction: () => true }, 'orders', order)
// biome-ignore lint/suspicious/noExplicitAny: untyped code must be able to publish
declare const untyped: any
await outbox.publish(untyped, 'orders', order)
declare const either: PoolClient | TransactionSql
await outbox.publish(either, 'orders', order)

// What is no transaction is refused by every method that takes one.
// @ts-expect-error: a pool
await outbox.publish(pool, 'orders', order)
// @ts-expect-error: a pool
await outbox.publishMany(pool, 'orders', [order])
// @ts-expect-error: a pool
await outbox.cancelTimer(pool, 'orders', 'reminder')
// @ts-expect-error: a pool
await outbox.pending(pool)
// @ts-expect-error: a pool
outbox.in(pool)
// @ts-expect-error: a pool
await outbox.within(pool, async () => {})
// @ts-expect-error: the postgres.js client
await outbox.publish(sql, 'orders', order)
// @ts-expect-error: the postgres.js client, with types of one's own
await outbox.publish(sqlWithTypes, 'orders', order)
// @ts-expect-error: the PGlite instance
await outbox.publish(pglite, 'orders', order)
// @ts-expect-error: the Drizzle database
await outbox.publish(drizzlePg, 'orders', order)
// @ts-expect-error: the Drizzle database
await outbox.publish(drizzlePostgresJs, 'orders', order)
// @ts-expect-error: the Drizzle database
outbox.in(drizzlePGlite)
// @ts-expect-error: the Kysely instance
await outbox.publish(kysely, 'orders', order)
// @ts-expect-error: a builder of transactions
await outbox.publish(kysely.transaction(), 'orders', order)
declare const kyselyOrTransaction: typeof kysely | typeof kyselyTransaction
// @ts-expect-error: perhaps the Kysely instance
await outbox.publish(kyselyOrTransaction, 'orders', order)
// @ts-expect-error: the transaction was forgotten
await outbox.publish('orders', order)
// @ts-expect-error: the transaction was forgotten
await outbox.publish('orders', order, { key: 'customer-7' })
// @ts-expect-error: a string is no transaction, whatever follows
await outbox.publish('orders', 'orders', order)
// @ts-expect-error: no client has this shape
await outbox.publish({}, 'orders', order)
// @ts-expect-error: it does not say whether it is in a transaction
await outbox.publish({ query: async () => [] }, 'orders', order)
// @ts-expect-error: inTransaction is a boolean, or a function that gives one
await outbox.publish({ query: async () => [], inTransaction: 'yes' }, 'orders', order)
// @ts-expect-error: `query` gives the result of pg, not its rows
await outbox.publish({ query: async () => ({ rows: [] }), inTransaction: true }, 'orders', order)
// @ts-expect-error: the promise of a client
await outbox.publish(pool.connect(), 'orders', order)
// @ts-expect-error: nothing
await outbox.publish(undefined, 'orders', order)
// @ts-expect-error: nothing
await outbox.publish(null, 'orders', order)
// @ts-expect-error: unknown must be narrowed first
await outbox.publish(untyped as unknown, 'orders', order)
declare const optional: PoolClient | undefined
// @ts-expect-error: perhaps nothing
await outbox.publish(optional, 'orders', order)
declare const poolOrClient: Pool | PoolClient
// @ts-expect-error: perhaps a pool
await outbox.publish(poolOrClient, 'orders', order)
