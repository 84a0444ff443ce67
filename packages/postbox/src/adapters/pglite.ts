import type { Database, Handle, Recogniser, TransactionState } from './executor.ts'
import { hasMethods } from './members.ts'
import { quoted } from './quoted.ts'
import { type Queryable, rowsExecutor } from './rows-executor.ts'

/** PGlite: the `tx` of `db.transaction` as handle, `db` as database. */
export const pglite: Recogniser = { handle, database }

interface Transaction extends Queryable {
  readonly closed: boolean
}

interface PGlite extends Queryable {
  /** The name of the channel as SQL: it is not quoted for us. */
  listen(channel: string, onNotify: (payload: string) => void): Promise<() => Promise<void>>
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
    listen: async (channels, hearing) => {
      const unlisten = await Promise.all(
        channels.map((channel) =>
          db.listen(quoted(channel), (payload) => hearing.notified(channel, payload)),
        ),
      )
      const end = async (): Promise<void> => void (await Promise.allSettled(unlisten.map((stop) => stop())))
      return { ...rowsExecutor(db), end, destroy: () => void end() }
    },
    transaction: (work) => db.transaction((tx) => work(rowsExecutor(tx))),
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
