import type { Statement } from '../../sql/statement.ts'
import type { Transaction } from './transaction.ts'

/** One statement under way. */
export interface Work {
  readonly tx: Transaction
  /** Postgres' statement_timestamp(). */
  readonly at: number
  /** The statement's parameters, for what its input does not tell. */
  readonly values: readonly unknown[]
  /** What it had seen when it had to wait; null: it has not waited. */
  readonly seen: unknown
}

/**
 * What the memory store does for a statement: clause by clause what its text says. Typed by the function that makes the statement, so that a
 * change of what goes into it, or of the rows that come out, does not compile here until it is made here, too.
 */
export type Operation<Build extends (...given: never[]) => Statement<unknown>> = (
  work: Work,
  input: NonNullable<ReturnType<Build>['input']>,
) => readonly NonNullable<ReturnType<Build>['row']>[]
