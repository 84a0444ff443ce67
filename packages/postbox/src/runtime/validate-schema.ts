import type { Executor } from '../adapters/executor.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { schemaDriftError } from '../core/schema-drift-error.ts'
import type { Catalogue } from '../core/schema-shape.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import type { ExpectedParts } from '../sql/expected-schema.ts'
import { currentVersion } from '../sql/migrations/index.ts'
import type { Names } from '../sql/names.ts'
import { catalogueFrom, readCatalogue } from '../sql/read-catalogue.ts'
import { schemaDifferences } from '../sql/schema-differences.ts'

/**
 * Resolves when the tables are what this build works on; else rejects with one error that lists every difference. Reads only. A schema that
 * a later version made is not judged: what looks like drift may be progress, and an old process must never have it mended away.
 */
export async function validateSchema(executor: Executor, names: Names, parts: ExpectedParts): Promise<void> {
  const found = await readFound(executor, names)
  if (found.tables.length === 0) {
    throw runtimeError('OUTBOX_SCHEMA_MISSING', `there is no table ${names.messages} in this database`)
  }
  if (found.version !== null && found.version > currentVersion) {
    const sentence = `the schema of ${names.messages} is at version ${found.version}, this postbox knows ${currentVersion}`
    throw runtimeError('OUTBOX_SCHEMA_NEWER', sentence)
  }
  const differences = schemaDifferences(names, parts, found)
  if (differences.length > 0) throw schemaDriftError(names.messages, differences)
}

// A table, or a column, that is not there.
const unreadable = ['42P01', '42703']

/** One statement; a second one where the version cannot be read, which is a difference itself. */
async function readFound(executor: Executor, names: Names): Promise<Catalogue> {
  try {
    return catalogueFrom(await executor.run(readCatalogue(names, { version: true })))
  } catch (error) {
    if (!unreadable.includes(sqlStateOf(error) ?? '')) throw error
    return catalogueFrom(await executor.run(readCatalogue(names, { version: false })))
  }
}
