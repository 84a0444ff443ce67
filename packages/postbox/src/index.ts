export type { OwnDatabase, OwnHandle } from './adapters/own.ts'
export type { DatabaseLike, PooledDatabase, TransactionLike } from './adapters/transaction-like.ts'
export type { Codec } from './core/codec.ts'
export { type ErrorCode, OutboxError } from './core/errors.ts'
export type { Context, Handler } from './core/handler.ts'
export type { Headers } from './core/headers.ts'
export type { LogEntry, Logger, LogLevel } from './core/log.ts'
export type { Message, PendingMessage, Receipt } from './core/message.ts'
export type { Due, PublishOptions } from './core/publish-options.ts'
export {
  type Bodies,
  type BodiesOf,
  defineQueues,
  type QueueDefinition,
  type QueueMap,
  typed,
} from './core/queues.ts'
export type { Instant } from './core/schedule.ts'
export type { Autovacuum, SchemaSqlOptions } from './core/schema-sql-options.ts'
export type { StandardSchema } from './core/standard-schema.ts'
export type { SubscribeOptions } from './core/subscribe-options.ts'
export type { DrainOptions, Health, PingOptions, RunOptions } from './lifecycle.ts'
export {
  createOutbox,
  type HandlerOf,
  type MessageOf,
  type Outbox,
  type OutboxOptions,
  type QueueOf,
} from './outbox.ts'
export type { PendingOptions } from './publish.ts'
export type { EachOptions, Publisher, ReceiptFor, TransactionPublisher } from './publisher.ts'
export type { Drained } from './runtime/drain.ts'
export type { Running } from './runtime/runner.ts'
export type { BoundedCount, QueueStats, Stats } from './runtime/stats.ts'
export { shutdownSignal } from './shutdown-signal.ts'
