import type { Statement } from '../sql/statement.ts'
import type { Executor } from './executor.ts'

/** A client that answers `{ rows }`: pg and PGlite. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

export function rowsExecutor(client: Queryable): Executor {
  return {
    async run<Row>(statement: Statement<Row>) {
      // An array of its own: pg writes into the one it is given.
      const result = await client.query(statement.text, [...statement.values])
      return result.rows as readonly Row[]
    },
  }
}
