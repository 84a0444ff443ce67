import { describeDrift } from '../core/describe-drift.ts'
import { describeSurface } from '../core/describe-surface.ts'
import { type Drift, findDrift } from '../core/schema-drift.ts'
import type { SchemaDifference } from '../core/schema-drift-error.ts'
import type { Catalogue } from '../core/schema-shape.ts'
import { type ExpectedView, findRoutineDrift, findViewDrift } from '../core/schema-surface.ts'
import { type ExpectedParts, expectedSchema } from './expected-schema.ts'
import { isRetyped, mendDrift } from './mend-schema.ts'
import { dropStatusView, mendSurface } from './mend-surface.ts'
import { currentVersion, migrations } from './migrations/index.ts'
import type { Names } from './names.ts'
import { replayFunction } from './replay-function.ts'
import { stepStatements } from './schema-script.ts'
import { statusView, type ViewedTables } from './status-view.ts'

/** Every difference between what was found and what this build works on, in the order in which to mend them. */
export function schemaDifferences(
  names: Names,
  parts: ExpectedParts,
  found: Catalogue,
): readonly SchemaDifference[] {
  const viewed = viewedTables(names, parts, found)
  const view = statusView(names, viewed)
  const drift = findDrift(expectedSchema(names, parts), found.tables)
  // While the view is there, Postgres lets nobody alter the columns that it reads.
  const isBlocked = (one: Drift): boolean => found.view?.kind === 'v' && isBlockedBy(view, one)
  const surface = [
    ...findRoutineDrift(replayFunction(names), found.routines),
    ...findViewDrift(view, found.view, { isInTheWay: drift.some(isBlocked) }),
  ]
  const differences = [
    ...drift.map((one) => ({
      ...describeDrift(one),
      sql: script([...(isBlocked(one) ? [dropStatusView(names)] : []), ...mendDrift(one)]),
    })),
    ...surface.map((one) => ({
      ...describeSurface(one),
      sql: script(mendSurface(names, one, viewed)),
    })),
  ]
  return found.version === currentVersion ? differences : [...differences, unnoted(names, found.version)]
}

/** The view shows what the options ask for, and of the rest what is there and as it was made: nobody would be told to mend that. */
function viewedTables(names: Names, parts: ExpectedParts, { tables }: Catalogue): ViewedTables {
  const drift = findDrift(
    expectedSchema(names, { ...parts, deadLetters: 'table', delivered: 'table' }),
    tables,
  )
  const isSound = (table: string): boolean =>
    !drift.some((one) => one.table.name === table && (one.kind === 'table' || isOtherColumn(one)))
  return {
    dead: parts.deadLetters !== 'discard' || isSound(names.dead),
    delivered: parts.delivered === 'table' || isSound(names.delivered),
  }
}

function isOtherColumn(drift: Drift): boolean {
  return drift.kind === 'column' && (drift.found === null || isRetyped(drift.column, drift.found))
}

function isBlockedBy({ reads }: ExpectedView, drift: Drift): boolean {
  if (!reads.includes(drift.table.name)) return false
  if (drift.kind === 'table') return drift.found !== null
  return drift.kind === 'column' && drift.found !== null && isRetyped(drift.column, drift.found)
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
