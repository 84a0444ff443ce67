// What the type tests share: handles of the clients' own types and an outbox with two queues. Nothing here ever runs.
import type { PGlite, Transaction } from '@electric-sql/pglite'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import { integer, pgTable } from 'drizzle-orm/pg-core'
import type { PgliteDatabase } from 'drizzle-orm/pglite'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { ControlledTransaction, Kysely, Transaction as KyselyTransaction } from 'kysely'
import type { Client, ClientBase, Pool, PoolClient } from 'pg'
import { createOutbox, defineQueues, typed } from 'postbox'
import type { Sql, TransactionSql } from 'postgres'
import { z } from 'zod'

export declare const pool: Pool
export declare const client: Client
export declare const clientBase: ClientBase
export declare const poolClient: PoolClient
export declare const sql: Sql
export declare const sqlTransaction: TransactionSql
export declare const pglite: PGlite
export declare const pgliteTransaction: Transaction

const stock = pgTable('stock', { left: integer('left').notNull() })
export type Schema = { stock: typeof stock }
export declare const drizzlePg: NodePgDatabase<Schema> & { $client: Pool }
export declare const drizzlePostgresJs: PostgresJsDatabase<Schema> & { $client: Sql }
export declare const drizzlePGlite: PgliteDatabase

export interface Tables {
  stock: { left: number }
}
export declare const kysely: Kysely<Tables>
export declare const kyselyTransaction: KyselyTransaction<Tables>
export declare const controlledTransaction: ControlledTransaction<Tables>

export interface Email {
  to: string
  subject: string
}

export const queues = defineQueues({
  orders: { body: z.object({ orderId: z.number() }) },
  emails: { body: typed<Email>() },
})

export const outbox = createOutbox({ database: pool, queues })
