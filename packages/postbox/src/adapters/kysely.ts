import type { Statement } from '../sql/statement.ts'
import type { Executor, Handle, Recogniser, TransactionState } from './executor.ts'
import { hasMethods } from './members.ts'

/** Kysely: the transactions of `db.transaction().execute` and of `db.startTransaction().execute` as handles. */
export const kysely: Recogniser = { handle, database: () => null }

export interface Kysely {
  readonly isTransaction: boolean
  /** Of a controlled transaction only. */
  readonly isCommitted?: boolean
  readonly isRolledBack?: boolean
  withoutPlugins(): Kysely
  executeQuery(query: object): Promise<{ readonly rows: readonly unknown[] }>
}

function handle(candidate: object): Handle | null {
  if (!isKysely(candidate)) return null
  return {
    ...kyselyExecutor(candidate),
    client: 'Kysely',
    // It does not show its dialect: with PGlite, what was published is found by polling unless `wake` is 'always'.
    singleSession: false,
    transactionState: () => stateOf(candidate),
  }
}

export function isKysely(candidate: object): candidate is Kysely {
  return hasMethods(candidate, 'executeQuery', 'withoutPlugins')
}

export function kyselyExecutor(tx: Kysely): Executor {
  return {
    async run<Row>({ text, values }: Statement<Row>) {
      // A plugin would rename our columns, or parse our texts.
      const plain = tx.withoutPlugins()
      const query = { kind: 'RawNode', sqlFragments: [text], parameters: [] }
      const { rows } = await plain.executeQuery({ sql: text, parameters: values, query })
      return rows as readonly Row[]
    },
  }
}

function stateOf({ isTransaction, isCommitted, isRolledBack }: Kysely): TransactionState {
  if (isCommitted || isRolledBack) return { inside: false, because: 'ended' }
  // One of `transaction().execute` that was kept says nothing of its end, but refuses every statement by itself.
  if (isTransaction) return { inside: true }
  return { inside: false, because: 'kysely' }
}
