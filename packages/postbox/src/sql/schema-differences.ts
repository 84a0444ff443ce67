import { describeDrift } from '../core/describe-drift.ts'
import { findDrift } from '../core/schema-drift.ts'
import type { SchemaDifference } from '../core/schema-drift-error.ts'
import type { Catalogue } from '../core/schema-shape.ts'
import { type ExpectedParts, expectedSchema } from './expected-schema.ts'
import { mendDrift } from './mend-schema.ts'
import { currentVersion, migrations } from './migrations/index.ts'
import type { Names } from './names.ts'
import { stepStatements } from './schema-script.ts'

/** Every difference between the tables that were found and those that this build works on, in the order in which to mend them. */
export function schemaDifferences(
  names: Names,
  parts: ExpectedParts,
  { tables, version }: Catalogue,
): readonly SchemaDifference[] {
  const drift = findDrift(expectedSchema(names, parts), tables).map((one) => ({
    ...describeDrift(one),
    sql: script(mendDrift(one)),
  }))
  if (version === currentVersion) return drift
  // With a step still to come, what it makes is not missing: it is for the step to make, and the rest is looked at after it.
  if (version !== null && version > 0 && drift.length > 0) return [outdated(names, parts, version)]
  return [...drift, unnoted(names, version)]
}

function outdated(names: Names, { autovacuum }: ExpectedParts, version: number): SchemaDifference {
  const options = { autovacuum: autovacuum ? {} : false } as const
  const steps = migrations.slice(version).flatMap((step) => stepStatements(names, step, options))
  return {
    object: `version in ${names.meta}`,
    expected: `${currentVersion}, made by \`await outbox.migrate()\``,
    found: `${version}`,
    sql: script(steps),
  }
}

/** All the tables are there, or mended one by one, and it was never written down or is forgotten. */
function unnoted(names: Names, version: number | null): SchemaDifference {
  const notes = migrations
    .slice(version ?? 0)
    .flatMap((step) => stepStatements(names, { ...step, up: () => [] }, { autovacuum: {} }))
  return {
    object: `version in ${names.meta}`,
    expected: `${currentVersion}`,
    found:
      version === null || version === 0 ? 'missing' : `${version}, on tables of version ${currentVersion}`,
    sql: script(notes),
  }
}

function script(statements: readonly string[]): string {
  return statements.map((statement) => `${statement};`).join('\n')
}
