// biome-ignore-all lint/suspicious/noExplicitAny: shapes of other people's clients, of which only a member's presence matters
import type { OwnDatabase, OwnHandle } from './own.ts'

/** The sentence that the compiler prints when something that cannot be a transaction is passed as one. */
interface Not<Why extends string> {
  readonly '✗ not a transaction': Why
}

/**
 * What types can tell about a handle: itself when it may be a transaction, else `Not<…>`, which says what to pass instead.
 * H is inferred from the arms that give it back, so the compiler prints the sentence alone. A transaction of a client that
 * we do not know passes as `{ query, inTransaction }`. The order of the arms matters.
 */
export type TransactionLike<H> = H extends null | undefined
  ? Not<'there is no transaction here; begin one, or use publishNow'>
  : H extends string
    ? Not<'pass the transaction first: publish(tx, queue, body)'>
    : H extends { readonly totalCount: number; connect: any }
      ? Not<'this is a pool; pass the client that ran BEGIN, or use publishNow'>
      : H extends PostgresReserved
        ? H
        : H extends { begin: any; unsafe: any }
          ? Not<'this is the postgres.js client; use sql.begin(tx => publish(tx, …))'>
          : H extends { transaction: any; listen: any; waitReady: any }
            ? Not<'this is the PGlite instance; use db.transaction(tx => publish(tx, …))'>
            : H extends PgClient | PostgresTransaction | QueryTransaction | KyselyTransaction | OwnHandle
              ? H
              : H extends { execute: any; selectDistinctOn: any }
                ? Not<'this is the Drizzle database; use db.transaction(tx => publish(tx, …))'>
                : H extends { executeQuery: any; withoutPlugins: any }
                  ? Not<'this is the Kysely instance; use db.transaction().execute(tx => publish(tx, …))'>
                  : H extends { inTransaction: any }
                    ? Not<'query(text, values) must give a promise of rows, inTransaction a boolean'>
                    : Not<'no known client has this shape; pass { query, inTransaction }'>

interface PgClient {
  query: any
  escapeIdentifier: any
}

interface PostgresTransaction {
  unsafe: any
  typed: any
}

/** `sql.reserve`'s handle, which also has `begin`: Postgres is asked at run time whether it is in a transaction. */
interface PostgresReserved {
  unsafe: any
  release: any
}

/** PGlite and Drizzle, on whatever driver. */
interface QueryTransaction {
  query: any
  rollback: any
}

interface KyselyTransaction {
  executeQuery: any
  readonly isTransaction: true
}

/** What `database` takes; the run-time check gives the same answer for those who do not compile. */
export type DatabaseLike =
  | { readonly totalCount: number; connect: any; query: any }
  | { unsafe: any; begin: any; reserve: any }
  | { query: any; exec: any; transaction: any; listen: any }
  | OwnDatabase

/** What `orm` takes: the database of Drizzle or Kysely, not a transaction of it; or what `database` takes. */
export type OrmLike =
  | { execute: any; transaction: any; selectDistinctOn: any }
  | { executeQuery: any; transaction: any; withoutPlugins: any }
  | DatabaseLike

/** A pool behind a pooler in transaction mode, and a direct connection to listen on. */
export interface PooledDatabase {
  readonly pool: DatabaseLike
  /** @default `pool` */
  readonly listen?: DatabaseLike
}
