// One PostgreSQL server for the whole run: DATABASE_URL names a running one, POSTGRES_BIN the binaries to start one
// from; without either it is the embedded one.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { databaseForThisRun } from '@postbox/embedded'
import type { TestProject } from 'vitest/node'
import { ask } from './ask.ts'
import { chosenBinaries } from './chosen-binaries.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string
    /** Where `openPGlite` keeps what it copies. */
    pgliteTemplate: string
  }
}

// Every test file holds a few connections of its own, and files run in parallel. What a test run writes is thrown
// away, so it need not survive a power cut.
const settings = { fsync: 'off', full_page_writes: 'off', max_connections: '200' }

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const database = await databaseForThisRun({ ...chosenBinaries, settings })
  try {
    const origin = chosenBinaries.binaries ? 'POSTGRES_BIN' : 'embedded'
    // Distributions add their own name: "15.14 (Debian 15.14-0+deb12u1)".
    const [version] = (await ask(database.url, 'show server_version')).split(' ')
    console.log(`PostgreSQL ${version} (${database.isEmbedded ? origin : 'DATABASE_URL'})`)
  } catch (error) {
    await database.stop()
    throw error
  }
  const folder = await mkdtemp(join(tmpdir(), 'postbox-pglite-'))
  project.provide('postgresUrl', database.url)
  project.provide('pgliteTemplate', join(folder, 'template.tar'))
  return async () => {
    await Promise.all([database.stop(), rm(folder, { recursive: true })])
  }
}
