// One PostgreSQL server for the whole run: DATABASE_URL names a running one, POSTGRES_BIN the binaries to start one
// from; without either it is the embedded one.
import { databaseForThisRun } from '@postbox/embedded'
import pg from 'pg'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
  }
}

// Every test file holds a few connections of its own, and files run in parallel. What a test run writes is thrown
// away, so it need not survive a power cut.
const settings = { fsync: 'off', max_connections: '200' }

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const binaries = process.env['POSTGRES_BIN']
  const database = await databaseForThisRun(binaries ? { binaries, settings } : { settings })
  try {
    const origin = database.isEmbedded ? (binaries ? 'POSTGRES_BIN' : 'embedded') : 'DATABASE_URL'
    console.log(`PostgreSQL ${await serverVersion(database.url)} (${origin})`)
  } catch (error) {
    await database.stop()
    throw error
  }
  project.provide('postgresUrl', database.url)
  return database.stop
}

async function serverVersion(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ server_version: string }>('show server_version')
    // Distributions add their own name: "15.14 (Debian 15.14-0+deb12u1)".
    return rows[0]?.server_version.split(' ')[0] ?? 'of unknown version'
  } finally {
    await client.end()
  }
}
