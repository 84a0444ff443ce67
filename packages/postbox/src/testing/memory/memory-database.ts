import type { Database, Executor } from '../../adapters/executor.ts'
import type { OrderedMessageRow } from '../../sql/claim-in-order.ts'
import type { Statement } from '../../sql/statement.ts'
import type { MemoryDeadLetter, MemoryDelivered, MemoryMessage } from './rows.ts'

export type { MemoryDeadLetter, MemoryDelivered, MemoryMessage }

/** Why a message came to be in the table. */
export type Arrival = 'publish' | 'follow-on' | 'replay' | 'resume'

/** A transaction: nobody else sees what it writes before it commits. */
export interface MemoryTransaction extends Executor {
  readonly isOpen: boolean
  /** As in Postgres, one in which a statement has failed is rolled back. */
  commit(): void
  rollback(): void
}

export interface MemoryDatabaseParts {
  /** The database's clock: milliseconds since 1970. */
  now(): number
  /** Messages became visible to everybody, in the order of their seqs. A timer that replaced another is one. */
  arrived?(messages: readonly MemoryMessage[], arrival: Arrival): void
}

/**
 * The tables of an outbox in memory. It runs the same statements as Postgres does, told by their names, on what they were made of: nothing of
 * the library but the SQL itself is left out. The contract suite (tests/conformance) holds both to the same answers.
 */
export interface MemoryDatabase extends Database {
  begin(): MemoryTransaction
  /** The handle is the transaction itself: whose client it is to be, is the test kit's to say. */
  transaction<T>(work: (tx: Executor, handle: MemoryTransaction) => Promise<T>): Promise<T>
  /**
   * The same as `run`, at once. A statement that would have to wait (it meets a timer's name, or a row, of an open transaction) fails as
   * after Postgres' lock_timeout.
   */
  runNow<Row>(statement: Statement<Row>): readonly Row[]
  /** Leases these messages at once, whenever they are due: those that are committed, alive, held by nobody and of no paused queue, as a claim would give them. */
  lease(
    seqs: readonly number[],
    claim: { readonly token: string; readonly leaseMs: number },
  ): readonly OrderedMessageRow[]
  /** Changes a message that is committed, as somebody's own SQL would. */
  alter(seq: number, changes: Partial<Pick<MemoryMessage, 'attempts' | 'deliveries' | 'leaseToken'>>): void
  /** Aborts when a transaction ends that had messages of the inbox in hand. */
  readonly nextEnd: AbortSignal
  /** What is committed, by seq: copies. */
  readonly messages: readonly MemoryMessage[]
  /** Those of them that could be leased now: held by nobody, of no paused queue, and written by no open transaction. */
  readonly free: readonly MemoryMessage[]
  /** The first message of a key in an ordered queue: one that lives, or is dead and holds it. */
  firstOf(queue: string, key: string): MemoryMessage | null
  readonly deadLetters: readonly MemoryDeadLetter[]
  readonly deliveredMessages: readonly MemoryDelivered[]
}
