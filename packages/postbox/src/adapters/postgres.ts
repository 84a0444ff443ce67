import type { Database, Executor, Handle, Recogniser, TransactionState } from './executor.ts'
import { type Sql, sqlExecutor } from './executors.ts'
import { hasMethods } from './members.ts'
import type { ListeningSql } from './postgres-listen.ts'

/** postgres.js: the `tx` of `sql.begin` (and its savepoints) as handle, `sql` as database. */
export const postgres: Recogniser = { handle, database }

interface RootSql extends ListeningSql {
  begin<T>(options: string, work: (tx: Sql) => Promise<T>): Promise<T>
}

function handle(candidate: object): Handle | null {
  if (!hasMethods(candidate, 'unsafe', 'typed', 'json')) return null
  const state = stateOf(candidate)
  return {
    ...sqlExecutor(candidate as unknown as Sql),
    client: 'postgres.js',
    singleSession: false,
    transactionState: () => state,
  }
}

function database(candidate: object): Database | null {
  if (!hasMethods(candidate, 'unsafe', 'begin', 'reserve')) return null
  const sql = candidate as unknown as RootSql
  return {
    ...sqlExecutor(sql),
    singleSession: false,
    // It keeps none of the pool's connections for itself, so any number will do.
    capacity: null,
    // No `connect`: a reserved connection that broke is given to others while its old handle still sends statements to it.
    listen: async (channels, hearing) =>
      (await import('./postgres-listen.ts')).listen(sql, channels, hearing),
    transaction: <T>(work: (tx: Executor, handle: unknown) => Promise<T>) =>
      sql.begin('isolation level read committed', (tx) => work(sqlExecutor(tx), tx)),
  }
}

// Only the handle inside `begin` has `savepoint`. A handle kept after its `begin` returned looks the same: not told apart.
function stateOf(candidate: object): TransactionState {
  if (hasMethods(candidate, 'savepoint')) return { inside: true }
  if (hasMethods(candidate, 'release')) return { inside: 'unknown' }
  return { inside: false, because: 'postgresJs' }
}
