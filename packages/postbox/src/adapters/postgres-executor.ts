import type { Statement } from '../sql/statement.ts'
import type { Executor } from './executor.ts'

/** postgres.js, as far as statements go. */
export interface Sql {
  unsafe(text: string, values: unknown[]): Promise<readonly unknown[]>
}

export function executor(sql: Sql): Executor {
  return {
    async run<Row>(statement: Statement<Row>) {
      return (await sql.unsafe(statement.text, [...statement.values])) as readonly Row[]
    },
  }
}
