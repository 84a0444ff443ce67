import type { Database, Handle, Recogniser, TransactionState } from './executor.ts'
import { type Queryable, rowsExecutor } from './executors.ts'
import { hasMethods } from './members.ts'
import type { PgPool } from './pg-session.ts'

/** node-postgres: `pg.Client` and pool clients as handles, `pg.Pool` as database. */
export const pg: Recogniser = { handle, database }

interface Client extends Queryable {
  /** 'I' idle, 'T' in a block, 'E' in a failed block. From pg 8.21 on. */
  getTransactionStatus?(): string | null
  /** False while a statement is under way. */
  readonly readyForQuery?: boolean
}

interface Pool extends PgPool {
  readonly options?: { readonly max?: unknown }
  on(event: 'error', listener: (error: unknown) => void): unknown
  removeListener(event: 'error', listener: (error: unknown) => void): unknown
}

function handle(candidate: object): Handle | null {
  if (isPool(candidate)) return handleOf(candidate, () => aPool)
  return isClient(candidate) ? handleOf(candidate, () => stateOf(candidate)) : null
}

// Its members one by one: a spread object takes microseconds, and each publish makes a handle.
function handleOf(client: Queryable, transactionState: () => TransactionState): Handle {
  const { run } = rowsExecutor(client)
  return { run, client: 'pg', singleSession: false, transactionState }
}

function database(candidate: object): Database | null {
  if (!isPool(candidate)) return null
  return {
    ...rowsExecutor(candidate),
    singleSession: false,
    capacity: capacityOf(candidate),
    // What needs a connection of its own is imported when it is needed: a service that only publishes does not carry it.
    transaction: async (work) => (await import('./pg-session.ts')).inTransaction(candidate, work),
    connect: async (lost) => (await import('./pg-session.ts')).connect(candidate, lost),
    listen: async (channels, hearing) =>
      (await import('./pg-session.ts')).listen(candidate, channels, hearing),
    onIdleError: (listener) => {
      candidate.on('error', listener)
      return () => candidate.removeListener('error', listener)
    },
  }
}

const aPool: TransactionState = { inside: false, because: 'aPool' }

function capacityOf({ options }: Pool): number | null {
  return typeof options?.max === 'number' ? options.max : null
}

/** What the client knows is as old as its last answer: while a statement is under way (it may be a ROLLBACK), it knows nothing. */
function stateOf(client: Client): TransactionState {
  const status = client.getTransactionStatus?.()
  if (status === undefined || client.readyForQuery === false) return { inside: 'unknown' }
  if (status === 'T') return { inside: true }
  return { inside: false, because: status === 'E' ? 'failed' : 'idle' }
}

function isPool(candidate: object): candidate is Pool {
  return (
    hasMethods(candidate, 'query', 'connect') &&
    typeof (candidate as { totalCount?: unknown }).totalCount === 'number'
  )
}

function isClient(candidate: object): candidate is Client {
  return hasMethods(candidate, 'query', 'connect', 'escapeIdentifier')
}
