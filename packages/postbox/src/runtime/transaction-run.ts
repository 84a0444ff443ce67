import type { Database, Executor } from '../adapters/executor.ts'
import type { Decision } from '../core/decision.ts'
import type { Draft } from '../core/message.ts'
import type { FencedRow } from '../sql/fence-transaction.ts'
import type { Clock } from './clock.ts'
import type { Failpoint } from './failpoint.ts'
import type { Held } from './held.ts'
import type { Lane } from './lane.ts'
import type { StatementRules } from './settle-statements.ts'

/** Opens transactions of the application's own client. */
export type Opener = Pick<Database, 'transaction'>

/** What the transactions of handlers need of their outbox. */
export interface TransactParts {
  open(): Promise<Opener>
  readonly lane: Pick<Lane, 'run'>
  readonly clock: Clock
  readonly rules: StatementRules
  readonly statementTimeoutMs: number
  readonly failpoint?: Failpoint | undefined
  /** Aborted: nobody waits any longer. */
  readonly giveUp: AbortSignal
}

/** A message in the hands of its handler, as far as a transaction goes. */
export interface Transacted {
  readonly held: Held
  readonly decision: Decision
  followOns: readonly Promise<Draft | null>[]
  /** Nothing more is published with it. */
  isSealed: boolean
}

export interface Transaction<T> {
  readonly members: readonly Transacted[]
  /** Of the delivery: ends the transaction unless it is being committed. */
  readonly signal: AbortSignal
  work(tx: unknown): Promise<T> | T
}

/** How far a transaction has come. */
export interface Progress<T> {
  /** Statements of ours inside it; null: it has not begun, or the client is ending it. A connection that goes back to its pool is somebody else's. */
  executor: Executor | null
  hasBegun: boolean
  fenced: FencedRow | null
  /** The work is done, and so is all of ours: whatever fails now, COMMIT may have been carried out. */
  done: { readonly value: T; readonly followOns: readonly number[] } | null
  /** Told once `done` is set. */
  onDone: () => void
}

/** A transaction of a handler's under way. */
export interface TransactionRun<T> {
  readonly transaction: Transaction<T>
  readonly progress: Progress<T>
  readonly parts: TransactParts
}
