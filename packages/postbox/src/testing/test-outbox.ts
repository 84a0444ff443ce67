import type { PendingMessage, Receipt } from '../core/message.ts'
import type { PublishOptions } from '../core/publish-options.ts'
import type { Bodies } from '../core/queues.ts'
import type { DeadLetter } from '../dead-letters.ts'
import type { Outbox } from '../outbox.ts'
import type { Drained } from '../runtime/drain.ts'
import type { TestTransaction } from './test-transaction.ts'

export interface TestOptions {
  /**
   * sync: publishing runs the handler before it returns, in a transaction of the test kit when that commits; messages for later fire at once.
   * loop: the loops of an outbox at work; messages for later wait until `advance`. @default 'sync'
   */
  readonly mode?: 'sync' | 'loop'
  /** What time it is at the beginning. @default now */
  readonly now?: Date
}

/** A message as it was published: not changed by what became of it. */
export interface PublishedMessage<Queue extends string = string, Body = unknown>
  extends Omit<PendingMessage, 'queue' | 'body' | 'attempts' | 'deliveries' | 'inFlight'> {
  readonly queue: Queue
  /** Decoded from what was stored: what goes into the queue's schema, not what comes out of it. */
  readonly body: Body
}

export type FeedOptions = PublishOptions & {
  /** Runs that have failed already. @default 0 */
  readonly attempts?: number
  /** Claims that there were already. @default 0 */
  readonly deliveries?: number
}

/** The test outbox of an outbox: `let box: TestOutboxOf<typeof outbox>`. */
export type TestOutboxOf<O> = O extends Outbox<infer B, infer Tx> ? TestOutbox<B, Tx> : never

/** An outbox whose messages are in memory, and whose time is the test's. Dispose it: `await using test = await createTestOutbox(outbox)`. */
export interface TestOutbox<B extends Bodies = Bodies, Tx = unknown> extends AsyncDisposable {
  /** The one that was taken over, or made. */
  readonly outbox: Outbox<B, Tx>
  /** Commits what the work did, and then (mode `sync`) runs the handlers; rolls back when the work throws, or when it says so. */
  transaction<T>(work: (tx: TestTransaction) => T | Promise<T>): Promise<T>
  /**
   * Puts a message into the table as somebody else might have, without middleware and without the queue's schema. It is delivered by the
   * loops, or (mode `sync`) by the next `drain` or `advance`.
   */
  feed<Q extends keyof B & string>(queue: Q, body: unknown, options?: FeedOptions): Promise<Receipt | null>
  /** What was published and committed so far, follow-ons included, oldest first. */
  published<Q extends keyof B & string>(queue: Q): readonly PublishedMessage<Q, B[Q]['in']>[]
  published(): readonly PublishedMessage[]
  /** What is in the table now, oldest first: waiting, scheduled, or in a handler's hands. */
  pending(queue?: keyof B & string): readonly PendingMessage[]
  /** What was given up, newest first. */
  dead(queue?: keyof B & string): readonly DeadLetter[]
  /** The time of the test. */
  now(): Date
  /** Lets time pass: what becomes due on the way is delivered when it is due. */
  advance(ms: number): Promise<void>
  /** Delivers what is due, until nothing is. No time passes. */
  drain(): Promise<Drained>
  /** Stops, and gives the outbox back as it was. Twice: the same promise. */
  dispose(): Promise<void>
}
