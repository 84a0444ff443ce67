import type pg from 'pg'

/** Commits what the work did on a client of the pool; closes the client when it fails, which rolls back. */
export async function inTransaction(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<unknown>,
): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await work(client)
    await client.query('commit')
    client.release()
  } catch (error) {
    client.release(true)
    throw error
  }
}
