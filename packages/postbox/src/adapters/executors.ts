import type { Statement } from '../sql/statement.ts'
import type { Executor } from './executor.ts'

/** A client that answers `{ rows }`: pg and PGlite. */
export interface Queryable {
  query(text: string, values: unknown[], ...options: object[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** `options`: the client's own. */
export function rowsExecutor(client: Queryable, ...options: object[]): Executor {
  return {
    async run<Row>(statement: Statement<Row>) {
      // An array of its own: pg writes into the one it is given.
      const result = await client.query(statement.text, [...statement.values], ...options)
      return result.rows as readonly Row[]
    },
  }
}

/** postgres.js, as far as statements go. */
export interface Sql {
  unsafe(text: string, values: unknown[]): Promise<readonly unknown[]>
}

export function sqlExecutor(sql: Sql): Executor {
  return {
    async run<Row>(statement: Statement<Row>) {
      return (await sql.unsafe(statement.text, [...statement.values])) as readonly Row[]
    },
  }
}
