import { OutboxError, type SchemaDifference, type SchemaDriftError } from 'postbox'
import type { Query } from './validate-schema-objects.ts'

/** An outbox, or what it asks. */
export interface Validated {
  validateSchema(): Promise<void>
}

/** What `validateSchema` rejects with, when it is about drift; null: all is well. */
export async function driftOf(outbox: Validated): Promise<SchemaDriftError | null> {
  try {
    await outbox.validateSchema()
    return null
  } catch (error) {
    if (!OutboxError.is(error, 'OUTBOX_SCHEMA_DRIFT')) throw error
    return error as SchemaDriftError
  }
}

export async function differencesOf(outbox: Validated): Promise<readonly SchemaDifference[]> {
  return (await driftOf(outbox))?.differences ?? []
}

/** Runs what the error gave, one after the other. */
export async function mend(query: Query, differences: readonly SchemaDifference[]): Promise<void> {
  for (const { sql } of differences) await query(sql)
}

export function objects(differences: readonly SchemaDifference[]): readonly string[] {
  return differences.map(({ object }) => object)
}
