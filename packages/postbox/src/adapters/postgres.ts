import type { Statement } from '../sql/statement.ts'
import type { Database, Executor, Handle, Recogniser, TransactionState } from './executor.ts'
import { hasMethods } from './members.ts'

/** postgres.js: the `tx` of `sql.begin` (and its savepoints) as handle, `sql` as database. */
export const postgres: Recogniser = { handle, database }

interface Sql {
  unsafe(text: string, values: unknown[]): Promise<readonly unknown[]>
}

interface RootSql extends Sql {
  begin<T>(options: string, work: (tx: Sql) => Promise<T>): Promise<T>
}

function handle(candidate: object): Handle | null {
  if (!hasMethods(candidate, 'unsafe', 'typed', 'json')) return null
  const state = stateOf(candidate)
  return {
    ...executor(candidate as unknown as Sql),
    client: 'postgres.js',
    singleSession: false,
    transactionState: () => state,
  }
}

function database(candidate: object): Database | null {
  if (!hasMethods(candidate, 'unsafe', 'begin', 'reserve')) return null
  const sql = candidate as unknown as RootSql
  return {
    ...executor(sql),
    singleSession: false,
    transaction: <T>(work: (tx: Executor) => Promise<T>) =>
      sql.begin('isolation level read committed', (tx) => work(executor(tx))),
  }
}

function executor(sql: Sql): Executor {
  return {
    async run<Row>(statement: Statement<Row>) {
      return (await sql.unsafe(statement.text, [...statement.values])) as readonly Row[]
    },
  }
}

// Only the handle inside `begin` has `savepoint`. A handle kept after its `begin` returned looks the same: not told apart.
function stateOf(candidate: object): TransactionState {
  if (hasMethods(candidate, 'savepoint')) return { inside: true }
  if (hasMethods(candidate, 'release')) return { inside: 'unknown' }
  return {
    inside: false,
    because: 'this is the postgres.js client: pass the handle that sql.begin gives to its callback',
  }
}
