import type { Database, Executor } from '../adapters/executor.ts'
import type { OutboxError } from '../core/errors.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { resolveSchemaSqlOptions, type SchemaSqlOptions } from '../core/schema-sql-options.ts'
import { sqlState, sqlStateOf } from '../core/sql-state.ts'
import { currentVersion, migrations } from '../sql/migrations/index.ts'
import type { Names } from '../sql/names.ts'
import { orSchemaMissing } from '../sql/schema-missing.ts'
import { createMeta, schemaScript, stepStatements } from '../sql/schema-script.ts'
import { type AppliedStep, lockForMigrating, readAppliedSteps, readSchemaState } from '../sql/schema-state.ts'
import { systemClock } from './clock.ts'

/**
 * Brings the schema to this build's version, step by step, each in a transaction of its own under an advisory lock: any number of processes may
 * call it at once, one does the work. Refuses a schema that a later version made, and a table that is not ours. For the transactions of
 * others a step waits a second at a time, sixty times at most.
 */
export async function migrate(database: Database, names: Names): Promise<void> {
  const { signal } = new AbortController()
  for (let refusals = 0; ; ) {
    try {
      if (await applyNext(database, names)) return
    } catch (error) {
      if (++refusals === mostRefusals || sqlStateOf(error) !== sqlState.lockNotAvailable) throw error
      await systemClock.sleep(restMs, signal)
    }
  }
}

// Behind a step that waits for a stranger's transaction, everybody who publishes or claims waits as well: it gives up, and comes again.
const lockTimeout = `set local lock_timeout = '1s'`
const restMs = 1_000
const mostRefusals = 60

/** Applies the first step that is missing. True: there was none. */
async function applyNext(database: Database, names: Names): Promise<boolean> {
  const options = resolveSchemaSqlOptions(undefined)
  return database.transaction(async (tx) => {
    await tx.run(lockForMigrating(names))
    const applied = await prepareMeta(tx, names)
    if (applied > currentVersion) throw newerSchema(names, applied)
    const next = migrations[applied]
    if (next === undefined) return true
    await runAll(tx, [lockTimeout, ...stepStatements(names, next, options)])
    return false
  })
}

/** The SQL that `migrate` runs on an empty database. */
export function schemaSql(names: Names, given: SchemaSqlOptions | undefined): string {
  return schemaScript(names, resolveSchemaSqlOptions(given))
}

/** Resolves when this build can work on the schema: one query, at start. */
export async function assertSchema(executor: Executor, names: Names): Promise<void> {
  const steps = await appliedSteps(executor, names)
  const version = versionOf(steps)
  if (version < currentVersion) {
    const sentence = `the schema of ${names.messages} is at version ${version}, this postbox needs ${currentVersion}`
    throw runtimeError('OUTBOX_SCHEMA_OUTDATED', sentence)
  }
  // A later version's schema serves us too, unless one of its steps says otherwise: rolling deploys depend on it.
  if (steps.some((step) => Number(step.version) > currentVersion && step.breaking === 'true'))
    throw newerSchema(names, version)
}

async function appliedSteps(executor: Executor, names: Names): Promise<readonly AppliedStep[]> {
  try {
    return await executor.run(readAppliedSteps(names))
  } catch (error) {
    throw orSchemaMissing(error, names.meta)
  }
}

/** The version that is there: 0 on an empty database, whose schema and version table are made here. */
async function prepareMeta(tx: Executor, names: Names): Promise<number> {
  const [state] = await tx.run(readSchemaState(names))
  if (state !== undefined && state.encoding !== 'UTF8') {
    throw runtimeError(
      'OUTBOX_UNSUPPORTED_DATABASE',
      `the encoding of this database is ${state.encoding}, not UTF8`,
    )
  }
  if (state?.meta === 'true') return versionOf(await tx.run(readAppliedSteps(names)))
  if (state?.messages === 'true') {
    throw runtimeError(
      'OUTBOX_TABLE_TAKEN',
      `a table ${names.messages} exists, and it was not made by postbox`,
    )
  }
  // Not `if not exists`: that needs the right to create schemas even where there is nothing to create.
  if (state?.namespace !== 'true') await runAll(tx, [`create schema ${names.schema}`])
  await runAll(tx, [createMeta(names)])
  return 0
}

function versionOf(steps: readonly AppliedStep[]): number {
  return Number(steps.at(-1)?.version ?? 0)
}

async function runAll(tx: Executor, statements: readonly string[]): Promise<void> {
  for (const text of statements) await tx.run({ name: 'migrate', text, values: [] })
}

function newerSchema(names: Names, version: number): OutboxError {
  const sentence = `the schema of ${names.messages} is at version ${version}, this postbox knows ${currentVersion}`
  return runtimeError('OUTBOX_SCHEMA_NEWER', sentence)
}
