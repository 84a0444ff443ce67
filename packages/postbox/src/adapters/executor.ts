import type { Statement } from '../sql/statement.ts'

/** Something that runs a statement: a connection, a pool, or a transaction of the caller's. */
export interface Executor {
  run<Row>(statement: Statement<Row>): Promise<readonly Row[]>
}

/** What the outbox's own work runs on: statements on their own, and transactions of ours. */
export interface Database extends Executor {
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>
  /** One session serves everybody (PGlite): advisory locks tell nothing there, so publishers always notify. */
  readonly singleSession: boolean
  /** Hears of idle connections that broke, until the returned function is called. With pg, unheard they end the process. */
  onIdleError?(listener: (error: unknown) => void): () => void
}

/** Whether a handle is inside a transaction: only sometimes can the handle itself tell. */
export type TransactionState =
  | { readonly inside: true }
  | { readonly inside: 'unknown' }
  | { readonly inside: false; readonly because: string }

/** A handle of the caller's, recognised. */
export interface Handle extends Executor {
  readonly client: string
  /** Asked right before the statement is sent, never cached: a transaction can end between two publishes. */
  transactionState(): TransactionState
  readonly singleSession: boolean
}

/** Knows one client's handles by their own members, without importing the client. */
export interface Recogniser {
  /** The handle, when it is one of this client's: transaction or not. */
  readonly handle: (candidate: object) => Handle | null
  /** The database, when it is one of this client's pools. */
  readonly database: (candidate: object) => Database | null
}
