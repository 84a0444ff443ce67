export type { OwnDatabase, OwnHandle } from './adapters/own.ts'
export type { DatabaseLike, OrmLike, PooledDatabase, TransactionLike } from './adapters/transaction-like.ts'
export type { TransactionOf } from './adapters/transaction-of.ts'
export type { BatchOptions } from './core/batch-options.ts'
export type {
  DiscardOptions,
  OperationListOptions,
  OperationProgress,
  ReplayAllOptions,
  ResumeOptions,
} from './core/bulk-options.ts'
export type { Codec } from './core/codec.ts'
export type { DeadLetterFilter, DeadLetterListOptions, ReplayOptions } from './core/dead-letter-options.ts'
export type { DeliveredListOptions } from './core/delivered-options.ts'
export { type ErrorCode, LeaseLostError, OutboxError } from './core/errors.ts'
export type {
  AckedEvent,
  BreakerClosedEvent,
  BreakerOpenedEvent,
  ClaimedEvent,
  ClaimFailedEvent,
  DeadEvent,
  DispatchedEvent,
  DlqWrittenEvent,
  DrainTimeoutEvent,
  FollowOnFailedEvent,
  LeaseLostEvent,
  LeaseRenewedEvent,
  ListenerLostEvent,
  ListenerRestoredEvent,
  OfMessage,
  OutboxEvent,
  PublishedEvent,
  QueuePausedEvent,
  QueueResumedEvent,
  ReleasedEvent,
  RetriedEvent,
  SettleFailedEvent,
  SnoozedEvent,
  WarningCode,
  WarningEvent,
} from './core/events.ts'
export type { FailureCycle, FailureHistory } from './core/failure-history.ts'
export type {
  BatchContext,
  BatchHandler,
  Context,
  DeliveryContext,
  FollowOn,
  Handler,
  MessageFrom,
  RetryOptions,
} from './core/handler.ts'
export type { Headers } from './core/headers.ts'
export type { OnceOptions } from './core/inbox-options.ts'
export type { BlockedState, KeyListOptions, KeyOptions } from './core/key-options.ts'
export type { LogEntry, Logger, LogLevel } from './core/log.ts'
export type { Message, PendingMessage, Receipt } from './core/message.ts'
export type { Delivery, Middleware, PublishCall } from './core/middleware.ts'
export type { DeadLetterOperation, OperationKind } from './core/operations.ts'
export type { PauseOptions } from './core/pause-options.ts'
export type { Due, PublishOptions } from './core/publish-options.ts'
export type { Purged, PurgeOptions } from './core/purge-options.ts'
export {
  type Bodies,
  type BodiesOf,
  defineQueues,
  type QueueDefinition,
  type QueueMap,
  typed,
} from './core/queues.ts'
export type {
  ConstantOptions,
  ExponentialOptions,
  Failure,
  Jitter,
  LinearOptions,
  RetryLimits,
  RetryPolicy,
} from './core/retry.ts'
export type { Instant } from './core/schedule.ts'
export type { SchemaDifference, SchemaDriftError } from './core/schema-drift-error.ts'
export type { Autovacuum, SchemaSqlOptions } from './core/schema-sql-options.ts'
export type { DeadReason } from './core/settlement.ts'
export type { StandardSchema } from './core/standard-schema.ts'
export type { ErrorClass, SubscribeOptions, Verdict } from './core/subscribe-options.ts'
export type { Subscriber } from './core/subscriber.ts'
export { TerminalError } from './core/terminal-error.ts'
export type { ValidateSchemaOptions } from './core/validate-schema-options.ts'
export type {
  DeadLetterGroup,
  DeadLetterOperations,
  DiscardResult,
  OperationPage,
  ReplayAllOutcome,
  ReplayAllPreview,
} from './dead-letter-operations.ts'
export type { DeadLetter, DeadLetterPage, DeadLetters, ReplayResult } from './dead-letters.ts'
export { defineSubscriber } from './define-subscriber.ts'
export type { DeliveredMessage, DeliveredMessages, DeliveredPage } from './delivered.ts'
export type { Inbox, InboxPurgeOptions, OnceResult } from './inbox.ts'
export type { BlockedKey, KeyPage, Keys, ResumeKeyResult, SkipKeyResult } from './keys.ts'
export type { DrainOptions, Health, PingOptions, RunOptions } from './lifecycle.ts'
export {
  createOutbox,
  type HandlerOf,
  type MessageOf,
  type Outbox,
  type OutboxOptions,
  type QueueOf,
} from './outbox.ts'
export type { PauseResult, ResumeResult } from './pausing.ts'
export type { PendingOptions } from './pending.ts'
export { adr054, constant, exponential, linear, noRetry } from './policies.ts'
export type { EachOptions, Publisher, ReceiptFor, TransactionPublisher } from './publisher.ts'
export type { Drained } from './runtime/drain.ts'
export type { Running } from './runtime/runner.ts'
export type { BoundedCount, QueueStats, Stats } from './runtime/stats.ts'
export { shutdownSignal } from './shutdown-signal.ts'
