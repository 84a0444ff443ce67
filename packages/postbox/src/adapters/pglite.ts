import type { Database, Handle, Recogniser, TransactionState } from './executor.ts'
import { hasMethods } from './members.ts'
import type { ListeningPGlite } from './pglite-listen.ts'
import { type Queryable, rowsExecutor } from './rows-executor.ts'

/** PGlite: the `tx` of `db.transaction` as handle, `db` as database. */
export const pglite: Recogniser = { handle, database }

interface Transaction extends Queryable {
  readonly closed: boolean
}

interface PGlite extends ListeningPGlite {
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
}

function handle(candidate: object): Handle | null {
  if (!hasMethods(candidate, 'query', 'exec', 'sql', 'listen')) return null
  const transactionState = (): TransactionState => stateOf(candidate)
  return {
    ...rowsExecutor(candidate as unknown as Queryable),
    client: 'PGlite',
    singleSession: true,
    transactionState,
  }
}

function database(candidate: object): Database | null {
  if (!hasMethods(candidate, 'query', 'exec', 'sql', 'transaction', 'listen')) return null
  const db = candidate as unknown as PGlite
  return {
    ...rowsExecutor(db),
    singleSession: true,
    capacity: null,
    // Imported when an outbox starts: a service that only publishes does not carry it.
    listen: async (channels, hearing) => (await import('./pglite-listen.ts')).listen(db, channels, hearing),
    transaction: (work) => db.transaction((tx) => work(rowsExecutor(tx), tx)),
  }
}

function stateOf(candidate: object): TransactionState {
  if (!hasMethods(candidate, 'rollback')) {
    return {
      inside: false,
      because: 'this is the PGlite instance: pass the handle that db.transaction gives to its callback',
    }
  }
  if (!(candidate as { closed?: unknown }).closed) return { inside: true }
  return { inside: false, because: 'its transaction has ended' }
}
