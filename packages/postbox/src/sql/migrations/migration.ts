import type { SchemaSqlOptions } from '../../core/schema-sql-options.ts'
import type { Names } from '../names.ts'

/** One step of the schema. Steps are only ever added: a released step is never edited. */
export interface Migration {
  readonly version: number
  readonly name: string
  /** True when a process of the version before could no longer work on the result; it then refuses to start. */
  readonly breaking: boolean
  /**
   * One statement each, in order, in one transaction. No more than one that locks a table for long, or two tables: burials lock the messages
   * and then the dead letters, and would be met the other way round.
   */
  readonly up: (names: Names, options: Required<SchemaSqlOptions>) => readonly string[]
}
