import type { SchemaSqlOptions } from './core/schema-sql-options.ts'
import type { StorageModes } from './core/storage-modes.ts'
import { resolveValidateSchemaOptions, type ValidateSchemaOptions } from './core/validate-schema-options.ts'
import { createDeadLetters, type DeadLetters } from './dead-letters.ts'
import { createDelivered, type DeliveredMessages } from './delivered.ts'
import { createInbox, type Inbox, type InboxParts } from './inbox.ts'
import { createKeys, type Keys } from './keys.ts'
import { createPausing, type Pausing } from './pausing.ts'
import { migrate, schemaSql } from './runtime/migrate.ts'
import { readStats, type Stats } from './runtime/stats.ts'
import { validateSchema } from './runtime/validate-schema.ts'
import type { Publishing } from './write.ts'

export interface StoreParts extends StorageModes, InboxParts {
  readonly outbox: Publishing
  /** Those that are defined or subscribed to. */
  readonly queues: () => readonly string[]
}

/** What is asked of the tables themselves. */
export interface Store extends Pausing {
  readonly deadLetters: DeadLetters
  readonly keys: Keys
  readonly delivered: DeliveredMessages
  readonly inbox: Inbox
  stats(): Promise<Stats>
  migrate(): Promise<void>
  schemaSql(options?: SchemaSqlOptions): Promise<string>
  validateSchema(options?: ValidateSchemaOptions): Promise<void>
}

/** Loaded when it is needed: a service that only publishes does not carry it. */
export function createStore(parts: StoreParts): Store {
  const { database, outbox, queues, deadLetters, delivered } = parts
  return {
    deadLetters: createDeadLetters({ database, outbox, deadLetters }),
    keys: createKeys({ database, outbox }),
    delivered: createDelivered({ database, outbox }),
    inbox: createInbox(parts),
    ...createPausing(parts),
    stats: () => readStats(database(), outbox.names, queues()),
    migrate: () => migrate(database(), outbox.names),
    schemaSql: async (options) => schemaSql(outbox.names, options),
    validateSchema: async (options) => {
      const { autovacuum } = resolveValidateSchemaOptions(options)
      await validateSchema(database(), outbox.names, { autovacuum, deadLetters, delivered })
    },
  }
}
