import { createRequire } from 'node:module'
import type pg from 'pg'

const require = createRequire(new URL('../../peers/package.json', import.meta.url))

/**
 * A package of `benchmarks/peers`, which is installed apart from the workspace, so that nobody who installs Postbox installs its peers. Nobody can compile
 * against their types therefore: `Shape` says the little that is used.
 */
export function peer<Shape>(name: string): Shape {
  return require(name) as Shape
}

/** The same version of the driver for every contender. */
export const { Pool, Client }: typeof pg = peer('pg')

export async function inTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    return result
  } finally {
    client.release()
  }
}
