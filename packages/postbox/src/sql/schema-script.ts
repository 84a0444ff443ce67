import type { SchemaSqlOptions } from '../core/schema-sql-options.ts'
import { migrations } from './migrations/index.ts'
import type { Migration } from './migrations/migration.ts'
import { literal, type Names } from './names.ts'

/** The table that says which steps were applied. In a table and not in a comment: restores drop comments. */
export function createMeta(names: Names): string {
  return `create table ${names.meta} (
  version int not null,
  name text not null,
  breaking boolean not null,
  applied_at timestamptz not null default now(),
  constraint ${names.index.meta_pkey} primary key (version)
)`
}

/** One step and the note that it was applied. */
export function stepStatements(
  names: Names,
  migration: Migration,
  options: Required<SchemaSqlOptions>,
): readonly string[] {
  const { version, name, breaking } = migration
  return [
    ...migration.up(names, options),
    `insert into ${names.meta} (version, name, breaking) values (${version}, ${literal(name)}, ${breaking})`,
  ]
}

/** Everything that `migrate` would do on an empty database, as a script for somebody's own migrations. */
export function schemaScript(names: Names, options: Required<SchemaSqlOptions>): string {
  const createSchema = names.plain.schema === 'public' ? [] : [`create schema if not exists ${names.schema}`]
  const steps = migrations.flatMap((migration) => stepStatements(names, migration, options))
  return [...createSchema, createMeta(names), ...steps].map((statement) => `${statement};\n`).join('\n')
}
