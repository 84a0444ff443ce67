import { literal, type Names } from './names.ts'
import type { NoRow, Statement } from './statement.ts'

/** 'true' or 'false' each. */
export interface SchemaState {
  /** The schema (namespace) itself is there. */
  readonly namespace: string
  readonly meta: string
  readonly messages: string
  /** 'UTF8', one hopes. */
  readonly encoding: string
}

/** Asks the catalogue what is there, without failing on what is not. */
export function readSchemaState(names: Names): Statement<SchemaState> {
  return {
    name: 'read_schema_state',
    text: `
select (to_regnamespace($1::text) is not null)::text as namespace,
       (to_regclass($2::text) is not null)::text as meta,
       (to_regclass($3::text) is not null)::text as messages,
       current_setting('server_encoding') as encoding`,
    values: [names.schema, names.meta, names.messages],
  }
}

export interface AppliedStep {
  readonly version: string
  readonly breaking: string
}

/** The steps that were applied, oldest first. Fails with 42P01 where the schema was never made. */
export function readAppliedSteps(names: Names): Statement<AppliedStep> {
  return {
    name: 'read_applied_steps',
    text: `select version::text as version, breaking::text as breaking from ${names.meta} as m order by m.version`,
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
