import type { Statement } from '../sql/statement.ts'
import type { Outside } from './outside.ts'

/** Something that runs a statement: a connection, a pool, or a transaction of the caller's. */
export interface Executor {
  run<Row>(statement: Statement<Row>): Promise<readonly Row[]>
  /** Of the test kit: delivers what was written, before the publisher goes on. */
  delivered?(): Promise<void>
}

/** A connection that is ours alone until it is given back. One statement at a time: clients disagree about more. */
export interface Session extends Executor {
  /** Gives the connection back to its pool. */
  release(): void
  /** Closes it: its state is unknown, or it does not answer. */
  destroy(): void
}

/** What a listening connection tells, until it is ended. */
export interface Hearing {
  notified(channel: string, payload: string): void
  /** The connection broke, or broke and came back: notifications may have been missed. Nothing more is told after this. */
  lost(error: unknown): void
}

/** A connection that listens. Locks that it takes by `run` last as long as it does. */
export interface Listening extends Executor {
  /** Listens no more, lets its locks go and gives the connection back; never rejects. */
  end(): Promise<void>
  /** The same at once, for a connection that no longer answers. */
  destroy(): void
}

/** What the outbox's own work runs on: statements on their own, and transactions of ours. */
export interface Database extends Executor {
  /** Begins, runs the work, commits; rolls back when it throws. `handle` is the same transaction as the application knows it: its client's own. */
  transaction<T>(work: (tx: Executor, handle: unknown) => Promise<T>): Promise<T>
  /** One session serves everybody (PGlite): advisory locks tell nothing there, so publishers always notify. */
  readonly singleSession: boolean
  /** How many connections there can be at once; null where nobody knows. */
  readonly capacity: number | null
  /** A connection of our own. Absent: each statement takes whichever is free. */
  connect?(lost: (error: unknown) => void): Promise<Session>
  /** Resolves when it listens, however long that takes. Absent: subscribers poll. */
  listen?(channels: readonly string[], hearing: Hearing): Promise<Listening>
  /** Hears of idle connections that broke, until the returned function is called. With pg, unheard they end the process. */
  onIdleError?(listener: (error: unknown) => void): () => void
}

/** Whether a handle is inside a transaction: only sometimes can the handle itself tell. */
export type TransactionState =
  | { readonly inside: true }
  | { readonly inside: 'unknown' }
  | { readonly inside: false; readonly because: Outside }

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
