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
  return version === currentVersion ? drift : [...drift, unnoted(names, version)]
}

/** Steps that were never applied, or forgotten: what they make is mended object by object, and then it is written down. */
function unnoted(names: Names, version: number | null): SchemaDifference {
  const notes = migrations
    .slice(version ?? 0)
    .flatMap((step) => stepStatements(names, { ...step, up: () => [] }, { autovacuum: {} }))
  return {
    object: `version in ${names.meta}`,
    expected: `${currentVersion}, made by \`await outbox.migrate()\``,
    found: version === null || version === 0 ? 'missing' : `${version}`,
    sql: script(notes),
  }
}

function script(statements: readonly string[]): string {
  return statements.map((statement) => `${statement};`).join('\n')
}
