// biome-ignore-all lint/suspicious/noExplicitAny: shapes of other people's clients, of which only a member's presence matters

/** The sentence that the compiler prints when something that cannot be a transaction is passed as one. */
interface Not<Why extends string> {
  readonly '✗ not a transaction': Why
}

/**
 * What types can tell about a handle: `unknown` accepts it, `Not<…>` refuses it and says what to pass instead. A
 * transaction of a client that we do not know passes as `{ query, inTransaction }`. The order of the arms matters.
 */
export type Refusal<T> = T extends string
  ? Not<'pass the transaction first: publish(tx, queue, body)'>
  : T extends { readonly totalCount: number; connect: any }
    ? Not<'this is a pool; pass the client that ran BEGIN, or use publishNow'>
    : T extends { begin: any; unsafe: any }
      ? Not<'this is the postgres.js client; use sql.begin(tx => publish(tx, …))'>
      : T extends { transaction: any; listen: any; waitReady: any }
        ? Not<'this is the PGlite instance; use db.transaction(tx => publish(tx, …))'>
        : T extends PgClient | PostgresTransaction | PGliteTransaction | OwnTransaction
          ? unknown
          : Not<'no known client has this shape; pass { query, inTransaction }'>

interface PgClient {
  query: any
  escapeIdentifier: any
}

/** `sql.begin`'s handle, and the one of `sql.reserve`, whose transaction the run-time guard asks for. */
interface PostgresTransaction {
  unsafe: any
  typed: any
}

interface PGliteTransaction {
  query: any
  rollback: any
}

interface OwnTransaction {
  query: any
  inTransaction: boolean | (() => boolean)
}

/** What `database` takes; the run-time check gives the same answer for those who do not compile. */
export type DatabaseLike =
  | { readonly totalCount: number; connect: any; query: any }
  | { unsafe: any; begin: any; reserve: any }
  | { query: any; exec: any; transaction: any; listen: any }
  | { query: any; transaction: any }
