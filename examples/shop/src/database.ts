import { randomBytes } from 'node:crypto'
import { databaseForThisRun } from '@postbox/embedded'
import pg from 'pg'

export interface ShopDatabase extends AsyncDisposable {
  readonly pool: pg.Pool
  /** Holds everything the demo makes; dropped with all of it at the end. */
  readonly schema: string
  /** One line: which server this is. */
  readonly description: string
}

// Ten handlers of each queue, four customers that may need a second connection while they hold one, and some to spare.
// With fewer, customers that hold one each could all wait for another.
const connections = 30

/** A server for this run (an embedded one, or that of DATABASE_URL) and an empty schema on it. */
export async function openDatabase(): Promise<ShopDatabase> {
  const server = await databaseForThisRun()
  const schema = `postbox_shop_${randomBytes(4).toString('hex')}`
  const pool = openPool(server.url, schema)
  try {
    await pool.query(`create schema ${schema}`)
    const { rows } = await pool.query<{ server_version: string }>('show server_version')
    const version = `PostgreSQL ${rows[0]?.server_version.split(' ')[0]}`
    const description = server.isEmbedded
      ? `Started ${version} for this run; it is removed at the end.`
      : `Using ${version} of DATABASE_URL, in the schema ${schema}.`
    return { pool, schema, description, [Symbol.asyncDispose]: () => close(pool, schema, server) }
  } catch (error) {
    await pool.end()
    await server.stop()
    throw error
  }
}

function openPool(connectionString: string, schema: string): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    max: connections,
    // Only the demo's schema is on the path, so that nothing here can touch another table of yours.
    onConnect: (client) => client.query(`set search_path = ${schema}`),
  })
  // A connection that breaks says so in an event, and an event nobody listens for ends the process. Whoever uses the
  // connection next gets the error as well.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

async function close(pool: pg.Pool, schema: string, server: { stop(): Promise<void> }): Promise<void> {
  try {
    await pool.query(`drop schema ${schema} cascade`)
  } finally {
    await pool.end()
    await server.stop()
  }
}
