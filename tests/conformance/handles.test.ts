import { useDatabase } from '../support/database.ts'
import { ownClient, pgClient, pglite, postgresJs } from './clients.ts'
import { describeHandle } from './handle-suite.ts'
import { drizzlePGlite, drizzlePg, drizzlePostgresJs, kysely } from './orms.ts'

const database = useDatabase()
const schema = (): string => database.schema

describeHandle('pg', async () => pgClient(database.url, { old: false }), schema)
describeHandle('pg before 8.21', async () => pgClient(database.url, { old: true }), schema)
describeHandle('postgres.js', async () => postgresJs(database.url, { hostile: false }), schema)
describeHandle('pg odd', async () => pgClient(database.url, { old: false, hostile: true }), schema)
describeHandle('postgres.js odd', async () => postgresJs(database.url, { hostile: true }), schema)
describeHandle('own', async () => ownClient(database.url), schema)
describeHandle(
  'PGlite',
  () => pglite(),
  () => 'public',
)
describeHandle('Drizzle on pg', async () => drizzlePg(database.url), schema)
describeHandle('Drizzle on pg before 8.21', async () => drizzlePg(database.url, { old: true }), schema)
describeHandle('Drizzle on postgres.js', async () => drizzlePostgresJs(database.url), schema)
describeHandle(
  'Drizzle on PGlite',
  () => drizzlePGlite(),
  () => 'public',
)
const byCallback = { controlled: 'by a callback', plugins: false } as const
describeHandle('Kysely', async () => kysely(database.url, byCallback), schema)
describeHandle(
  'Kysely with plugins',
  async () => kysely(database.url, { ...byCallback, plugins: true }),
  schema,
)
describeHandle(
  'Kysely by hand',
  async () => kysely(database.url, { controlled: 'by hand', plugins: true }),
  schema,
)
