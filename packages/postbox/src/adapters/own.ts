import { OutboxError } from '../core/errors.ts'
import { show } from '../core/show.ts'
import type { Statement } from '../sql/statement.ts'
import type { Database, Executor, Handle, Recogniser, TransactionState } from './executor.ts'
import { hasMethods } from './members.ts'

/** A transaction of any other client, wrapped by the caller in two members. */
export interface OwnHandle {
  /** Runs one statement with `$1, $2 …` and gives its rows as objects. */
  query(text: string, values: readonly unknown[]): Promise<readonly unknown[]>
  /** Whether the handle is inside a transaction right now. */
  readonly inTransaction: boolean | (() => boolean)
}

/** A database of any other client, for an outbox that runs: a plain object of these two. */
export interface OwnDatabase {
  query(text: string, values: readonly unknown[]): Promise<readonly unknown[]>
  /** Begins, runs the work, commits; rolls back when the work throws. With `inTransaction`, what it gives can be passed to `publish`, too. */
  transaction<T>(work: (tx: Pick<OwnHandle, 'query'>) => Promise<T>): Promise<T>
}

export const own: Recogniser = { handle, database }

function handle(candidate: object): Handle | null {
  if (!hasMethods(candidate, 'query') || !('inTransaction' in candidate)) return null
  const given = candidate as unknown as OwnHandle
  return { ...executor(given), client: 'own', singleSession: false, transactionState: () => stateOf(given) }
}

function database(candidate: object): Database | null {
  // A plain object only: ORMs have `query` and `transaction` too, and answer them with other shapes.
  if (!hasMethods(candidate, 'query', 'transaction') || Object.getPrototypeOf(candidate) !== Object.prototype)
    return null
  const given = candidate as unknown as OwnDatabase
  return {
    ...executor(given),
    singleSession: false,
    capacity: null,
    transaction: (work) => given.transaction((tx) => work(executor(tx), tx)),
  }
}

function executor(client: Pick<OwnHandle, 'query'>): Executor {
  return {
    async run<Row>(statement: Statement<Row>) {
      const rows: unknown = await client.query(statement.text, statement.values)
      if (Array.isArray(rows)) return rows
      throw new OutboxError(
        'OUTBOX_UNKNOWN_HANDLE',
        `expected \`query\` to give an array of rows, got ${show(rows)}`,
      )
    },
  }
}

function stateOf(given: OwnHandle): TransactionState {
  const inside = typeof given.inTransaction === 'function' ? given.inTransaction() : given.inTransaction
  return inside === true
    ? { inside }
    : { inside: false, because: `its \`inTransaction\` says ${String(inside)}` }
}
