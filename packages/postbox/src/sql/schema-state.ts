import { literal, type Names } from './names.ts'
import type { NoRow, Statement } from './statement.ts'

export interface SchemaState {
  /** The schema (namespace) itself is there. */
  readonly namespace: boolean
  readonly meta: boolean
  readonly messages: boolean
}

/** Asks the catalogue what is there, without failing on what is not. */
export function readSchemaState(names: Names): Statement<SchemaState> {
  return {
    name: 'read_schema_state',
    text: `
select to_regnamespace($1::text) is not null as namespace,
       to_regclass($2::text) is not null as meta,
       to_regclass($3::text) is not null as messages`,
    values: [names.schema, names.meta, names.messages],
  }
}

export interface AppliedStep {
  readonly version: number
  readonly breaking: boolean
}

/** The steps that were applied, oldest first. Fails with 42P01 where the schema was never made. */
export function readAppliedSteps(names: Names): Statement<AppliedStep> {
  return {
    name: 'read_applied_steps',
    text: `select version, breaking from ${names.meta} order by version`,
    values: [],
  }
}

/** One migration at a time per outbox, until the transaction ends; the others wait and then find nothing to do. */
export function lockForMigrating(names: Names): Statement<NoRow> {
  return {
    name: 'lock_for_migrating',
    text: `select 1 as locked from (select pg_advisory_xact_lock(hashtextextended(${literal(`${names.channel} migrate`)}, 0))) as l`,
    values: [],
  }
}
