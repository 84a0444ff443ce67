import type { Statement } from '../sql/statement.ts'
import type { Executor, Handle, Recogniser, TransactionState } from './executor.ts'
import { hasMethods } from './members.ts'
import { pg } from './pg.ts'
import { pglite } from './pglite.ts'
import { postgres } from './postgres.ts'

/** Drizzle on any of its drivers for Postgres: the `tx` of `db.transaction`, nested ones too, as handle. */
export const drizzle: Recogniser = { handle, database: () => null }

/** What Drizzle gives: `{ rows }` of pg and PGlite, the array of postgres.js. */
type Result = readonly unknown[] | { readonly rows: readonly unknown[] }

export interface Drizzle {
  execute(query: object): PromiseLike<Result>
  /** Not documented. Where it is missing, `tx` is taken for what it looks like. */
  readonly session?: { readonly client?: unknown }
}

function handle(candidate: object): Handle | null {
  if (!isDrizzle(candidate)) return null
  const driver = driverOf(candidate)
  const transactionState = (): TransactionState =>
    hasMethods(candidate, 'rollback') ? (driver?.transactionState() ?? { inside: true }) : aDatabase
  return {
    ...drizzleExecutor(candidate),
    client: 'Drizzle',
    singleSession: driver?.singleSession === true,
    transactionState,
  }
}

/** `selectDistinctOn`: those for other databases do not have it. */
export function isDrizzle(candidate: object): candidate is Drizzle {
  return hasMethods(candidate, 'execute', 'transaction', 'selectDistinctOn')
}

export function drizzleExecutor(tx: Drizzle): Executor {
  return {
    async run<Row>({ text, values }: Statement<Row>) {
      // As much of an SQL object as `execute` looks at: text of one's own with values is not to be had otherwise without an import.
      const query = { getSQL: () => query, toQuery: () => ({ sql: text, params: [...values] }) }
      const result = await tx.execute(query)
      return ('rows' in result ? result.rows : result) as readonly Row[]
    },
  }
}

const aDatabase: TransactionState = { inside: false, because: 'drizzle' }

/** What it runs on knows more: whether the transaction has ended, and whether there is only one session. */
function driverOf({ session }: Drizzle): Handle | null {
  const client = session?.client as object
  return client ? (pg.handle(client) ?? postgres.handle(client) ?? pglite.handle(client)) : null
}
