import type { Database } from './adapters/executor.ts'
import type { SchemaSqlOptions } from './core/schema-sql-options.ts'
import { resolveValidateSchemaOptions, type ValidateSchemaOptions } from './core/validate-schema-options.ts'
import { createDeadLetters, type DeadLetters } from './dead-letters.ts'
import type { Publishing } from './publish.ts'
import { migrate, schemaSql } from './runtime/migrate.ts'
import { readStats, type Stats } from './runtime/stats.ts'
import { validateSchema } from './runtime/validate-schema.ts'

export interface StoreParts {
  readonly database: () => Database
  readonly outbox: Publishing
  /** Those that are defined or subscribed to. */
  readonly queues: () => readonly string[]
  readonly deadLetters: 'table' | 'discard'
}

/** What is asked of the tables themselves. */
export interface Store {
  readonly deadLetters: DeadLetters
  stats(): Promise<Stats>
  migrate(): Promise<void>
  schemaSql(options?: SchemaSqlOptions): string
  validateSchema(options?: ValidateSchemaOptions): Promise<void>
}

/** Loaded when it is needed: a service that only publishes does not carry it. */
export function createStore({ database, outbox, queues, deadLetters }: StoreParts): Store {
  return {
    deadLetters: createDeadLetters({ database, outbox }),
    stats: () => readStats(database(), outbox.names, queues()),
    migrate: () => migrate(database(), outbox.names),
    schemaSql: (options) => schemaSql(outbox.names, options),
    validateSchema: async (options) => {
      const { autovacuum } = resolveValidateSchemaOptions(options)
      await validateSchema(database(), outbox.names, { autovacuum, deadLetters })
    },
  }
}
