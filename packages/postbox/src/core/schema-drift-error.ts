import type { OutboxError } from './errors.ts'
import { runtimeError } from './runtime-errors.ts'

/** One difference between the tables and what this version of postbox works on. */
export interface SchemaDifference {
  /** What it is about, by its full name: `index "public"."outbox_ready"`. */
  readonly object: string
  readonly expected: string
  readonly found: string
  /** Statements that mend it, each with its semicolon. */
  readonly sql: string
}

/** The error of `validateSchema`: code `OUTBOX_SCHEMA_DRIFT`. */
export type SchemaDriftError = OutboxError & { readonly differences: readonly SchemaDifference[] }

/** One error for all of them: whoever mends a schema wants to see the whole of it. */
export function schemaDriftError(table: string, differences: readonly SchemaDifference[]): SchemaDriftError {
  const count = differences.length === 1 ? '1 difference' : `${differences.length} differences`
  const sentence = `the schema of ${table} has ${count}:\n${differences.map(differenceText).join('\n')}\nNothing was changed.`
  return Object.assign(runtimeError('OUTBOX_SCHEMA_DRIFT', sentence), {
    differences: Object.freeze([...differences]),
  })
}

function differenceText({ object, expected, found, sql }: SchemaDifference, index: number): string {
  const statements = sql.replaceAll(/^/gm, '     ')
  return `${index + 1}. ${object}: expected ${expected}, found ${found}. Mended by\n${statements}`
}
