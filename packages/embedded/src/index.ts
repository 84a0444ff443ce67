export type { DatabaseForThisRun } from './database-for-this-run.ts'
export { databaseForThisRun } from './database-for-this-run.ts'
export type { EmbeddedPostgres, StartOptions } from './start-postgres.ts'
export { startPostgres } from './start-postgres.ts'
