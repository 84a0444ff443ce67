import type { Database, Handle } from './adapters/executor.ts'
import type { OutboxSettings } from './core/outbox-options.ts'
import type { Registry } from './runtime/runner.ts'
import type { Opener } from './runtime/transaction-run.ts'
import type { Internals } from './runtime/works.ts'
import type { Publishing } from './write.ts'

/** Where an outbox meets the world. Asked at each call and at each start, so that the test kit can put a memory store in its place. */
export interface Seam {
  handleOf(tx: unknown): Handle
  database(): Database
  listenDatabase(): Database
  /** Opens the transactions of handlers. */
  opener(): Promise<Opener>
  internals: Internals | undefined
}

/** What an outbox is made of: behind a symbol, for the test kit. */
export interface OutboxParts {
  readonly settings: OutboxSettings
  readonly outbox: Publishing
  readonly registry: Registry
  readonly seam: Seam
}
