// A database whose transactions a test can hold, kill or make forget their answer.
import type pg from 'pg'
import type { OwnDatabase, OwnHandle } from 'postbox'

/** Where a transaction stands: with its work done and nothing committed, or committed and its answer not yet given. */
export type Moment = 'before commit' | 'after commit'

type Query = OwnHandle['query']

export interface Script {
  /** Called at both moments of each transaction, with its number from 1 on. What it throws, the caller of the transaction gets. */
  reach?(moment: Moment, number: number): Promise<void> | void
  /** Called before each statement of a transaction. */
  send?(text: string): Promise<void> | void
}

export function scriptedTransactions(pool: pg.Pool, { reach, send }: Script): OwnDatabase {
  const queryOf =
    (client: pg.Pool | pg.PoolClient): Query =>
    async (text, values) => {
      await send?.(text)
      return (await client.query(text, [...values])).rows
    }
  let count = 0
  const transaction = async <T>(work: (tx: { readonly query: Query }) => Promise<T>): Promise<T> => {
    const number = ++count
    const client = await pool.connect()
    try {
      await client.query('begin')
      const result = await work({ query: queryOf(client) })
      await reach?.('before commit', number)
      await client.query('commit')
      await reach?.('after commit', number)
      return result
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  }
  return { query: queryOf(pool), transaction }
}
