// Outboxes of the version before and of this one, on the tables of one test file.
import type { Outbox, OutboxOptions } from 'postbox'
import type { Bench } from '../support/decisions-bench.ts'
import { createPreviousOutbox } from './previous.ts'

export type Build = 'the version before' | 'this version'

/** One does something, the other goes on from there: both ways, because a deployment may be rolled back. */
export const directions: readonly (readonly [Build, Build])[] = [
  ['the version before', 'this version'],
  ['this version', 'the version before'],
]

/** An outbox of either build over the schema of the bench. */
export function outboxOfBuild(bench: Bench, build: Build, options: OutboxOptions = {}): Outbox {
  if (build === 'this version') return bench.outboxOf(options)
  return createPreviousOutbox({
    database: bench.pool(),
    schema: bench.database.schema,
    logger: false,
    ...options,
  })
}
