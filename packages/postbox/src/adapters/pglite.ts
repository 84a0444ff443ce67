import type { Database, Handle, Recogniser, TransactionState } from './executor.ts'
import { type Queryable, rowsExecutor } from './executors.ts'
import { hasMethods } from './members.ts'
import type { ListeningPGlite } from './pglite-listen.ts'

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
    ...rowsExecutor(candidate as unknown as Queryable, quickly),
    client: 'PGlite',
    singleSession: true,
    transactionState,
  }
}

function database(candidate: object): Database | null {
  if (!hasMethods(candidate, 'query', 'exec', 'sql', 'transaction', 'listen')) return null
  const db = candidate as unknown as PGlite
  return {
    ...rowsExecutor(db, quickly),
    singleSession: true,
    capacity: null,
    // Imported when an outbox starts: a service that only publishes does not carry it.
    listen: async (channels, hearing) => (await import('./pglite-listen.ts')).listen(db, channels, hearing),
    transaction: (work) => db.transaction((tx) => work(rowsExecutor(tx, quickly), tx)),
  }
}

/** The type of bytes is 17. By itself it makes an array of all of them and a text of each: 0.4 s and 100 MB for a million, the bodies of one batch. */
const quickly = {
  serializers: {
    17: (bytes: Uint8Array): string =>
      `\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`,
  },
}

function stateOf(candidate: object): TransactionState {
  if (!hasMethods(candidate, 'rollback')) return { inside: false, because: 'pglite' }
  return (candidate as { closed?: unknown }).closed ? { inside: false, because: 'ended' } : { inside: true }
}
