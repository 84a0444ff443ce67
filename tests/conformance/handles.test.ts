import { useDatabase } from '../support/database.ts'
import { ownClient, pgClient, pglite, postgresJs } from './clients.ts'
import { describeHandle } from './handle-suite.ts'

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
