import { createOutbox } from 'postbox'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { recogniseOrm } from '../../packages/postbox/src/adapters/recognise-orm.ts'
import { useDatabase } from '../support/database.ts'
import { type ClientUnderTest, ownClient, pgClient, pglite, postgresJs } from './clients.ts'
import { drizzlePGlite, drizzlePg, drizzlePostgresJs, kysely, type OrmUnderTest } from './orms.ts'
import { testTransactions } from './transaction-suite.ts'

interface OrmSuite {
  readonly client: string
  make(settings: string): Promise<OrmUnderTest>
  query(text: string): Promise<readonly Record<string, unknown>[]>
  readonly schema: () => string
  readonly saysIsolation: boolean
}

/** The transactions that an ORM opens for us, held to the same as those of the databases. */
function describeOrm(name: string, { client, make, query, schema, saysIsolation }: OrmSuite): void {
  const table = `outbox ${name}`
  const messages = (): string => `"${schema()}"."${table}"`
  const open = async (settings = '') => {
    const opened = await make(settings)
    onTestFinished(opened.close)
    const outbox = createOutbox({
      database: opened.database as never,
      schema: schema(),
      table,
      logger: false,
    })
    return { outbox, opener: recogniseOrm(opened.orm)!, inside: opened.inside }
  }

  describe(name, () => {
    beforeAll(async () => {
      const opened = await make('')
      await createOutbox({ database: opened.database as never, schema: schema(), table }).migrate()
      await opened.close()
    })

    beforeEach(async () => {
      await query(`delete from ${messages()}`)
    })

    test(`is known as ${client}`, async () => {
      expect((await open()).opener.client).toBe(client)
    })

    testTransactions({ open, query, messages, saysIsolation })
  })
}

describe('on a server', () => {
  const database = useDatabase()

  function urlWith(settings: string): string {
    const options = new URL(database.url).searchParams.get('options')
    return database.url.replace(/(options=)[^&]*/, `$1${encodeURIComponent(`${options} ${settings}`)}`)
  }

  const itself = (client: ClientUnderTest): OrmUnderTest => ({ ...client, orm: client.database })
  const server = {
    query: (text: string): Promise<Record<string, unknown>[]> => database.query(text),
    schema: (): string => database.schema,
    saysIsolation: true,
  }
  const suite = (client: string, make: (url: string) => OrmUnderTest): OrmSuite => ({
    ...server,
    client,
    make: async (settings) => make(urlWith(settings)),
  })

  describeOrm('Drizzle on pg', suite('Drizzle', drizzlePg))
  describeOrm('Drizzle on postgres.js', suite('Drizzle', drizzlePostgresJs))
  describeOrm(
    'Kysely',
    suite('Kysely', (url) => kysely(url, { controlled: 'by a callback', plugins: true })),
  )
  describeOrm(
    'pg itself',
    suite('pg', (url) => itself(pgClient(url, { old: false }))),
  )
  describeOrm(
    'postgres.js itself',
    suite('postgres.js', (url) => itself(postgresJs(url, { hostile: false }))),
  )
  describeOrm('an own client itself', {
    ...suite('own', (url) => itself(ownClient(url))),
    saysIsolation: false,
  })
})

describe('in the process', () => {
  let drizzle: OrmUnderTest
  let inProcess: ClientUnderTest

  beforeAll(async () => {
    drizzle = await drizzlePGlite()
    inProcess = await pglite()
  })

  afterAll(async () => {
    await drizzle.close()
    await inProcess.close()
  })

  const inThere = { schema: (): string => 'public', saysIsolation: false }
  const kept = { close: async (): Promise<void> => {} }

  describeOrm('Drizzle on PGlite', {
    ...inThere,
    // What it was set to for one test is reset by the next.
    saysIsolation: true,
    client: 'Drizzle',
    make: async (settings) => {
      const level = settings.includes('repeatable') ? 'repeatable read' : 'read committed'
      await drizzle.query(`set default_transaction_isolation = '${level}'`)
      return { ...drizzle, ...kept }
    },
    query: (text) => drizzle.query(text),
  })
  describeOrm('PGlite itself', {
    ...inThere,
    client: 'PGlite',
    make: async () => ({ ...inProcess, orm: inProcess.database, ...kept }),
    query: (text) => inProcess.query(text),
  })
})
