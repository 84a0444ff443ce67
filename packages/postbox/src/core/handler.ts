import type { LogLevel } from './log.ts'
import type { Message } from './message.ts'
import type { PublishOptions } from './publish-options.ts'
import type { Bodies } from './queues.ts'

export interface RetryOptions {
  /** When to run it again. @default as the retry policy says */
  readonly afterMs?: number
  /** What went wrong: recorded, and given to the policy. */
  readonly error?: unknown
}

/** Runs work in a transaction that ends with the message. */
export type Transact<Tx> = <T>(work: (tx: Tx) => Promise<T> | T) => Promise<T>

/** A message that will be published with the acknowledgement. */
export interface FollowOn {
  readonly id: string
}

/** What every handler gets beside its message or messages. */
export interface DeliveryContext {
  /** Aborts when the lease is lost, when `timeoutMs` is over, and when a stop has waited long enough. Pass it on to whatever you await. */
  readonly signal: AbortSignal
  /** Writes to the outbox's log, with the message's queue, id and attempt. */
  readonly log: Readonly<
    Record<LogLevel, (message: string, fields?: Readonly<Record<string, unknown>>) => void>
  >
  readonly lease: {
    /** Renews the lease now, to its whole length. It is renewed anyway while the handler runs and the event loop turns. */
    extend(): Promise<void>
  }
}

/**
 * What a handler gets beside the message. The decisions are recorded when they are called, and the first one counts; without any,
 * returning acknowledges and throwing fails.
 */
export interface Context<B extends Bodies = Bodies, Tx = unknown> extends DeliveryContext {
  ack(): void
  /** Runs it again later. Counts as a failed attempt, and obeys `maxAttempts`. */
  retry(options?: RetryOptions): void
  /** Gives it up: it goes to the dead letters. An error is described, a text recorded as it is. */
  reject(reason?: string | Error): void
  /** Puts it back for later, as if it had not been delivered. */
  snooze(delayMs: number): void
  /**
   * Publishes a follow-on message, in the statement that deletes this one: both or none. Dropped unless the message is acknowledged, and
   * where it is a timer that waits already. Checked at once; the promise need not be awaited, but what is wrong with it fails the
   * delivery. null: a middleware kept it back.
   */
  publish<Q extends keyof B & string>(
    queue: Q,
    body: B[Q]['in'],
    options?: PublishOptions,
  ): Promise<FollowOn | null>
  /**
   * Exactly-once effects: runs the work in a transaction that ends this message, and publishes what follows from it, in the same commit. Whoever
   * has lost the lease is refused before any work. Once for a delivery: its commit is the acknowledgement, and when it fails, nothing was
   * written. A decision for anything else, made inside, rolls it back. `tx` is the transaction of your own client or ORM.
   */
  readonly transaction: Transact<Tx>
}

/** What a handler of batches gets beside the messages: the same decisions, each for one of them. Those that are not decided are acknowledged. */
export interface BatchContext<B extends Bodies = Bodies, Tx = unknown> extends DeliveryContext {
  ack(message: Message): void
  retry(message: Message, options?: RetryOptions): void
  reject(message: Message, reason?: string | Error): void
  snooze(message: Message, delayMs: number): void
  publish<Q extends keyof B & string>(
    message: Message,
    followOn: { readonly queue: Q; readonly body: B[Q]['in']; readonly options?: PublishOptions },
  ): Promise<FollowOn | null>
  /** The same as that of one message, for all that are not decided: they end together, or none does. */
  readonly transaction: Transact<Tx>
}

/** The messages of one queue or of several: a union then, told apart by `queue`. */
export type MessageFrom<B extends Bodies, Queue extends keyof B & string> = {
  [Q in Queue]: Message<Q, B[Q]['out']>
}[Queue]

/** Returning (anything) acknowledges the message, unless it decided otherwise; throwing fails it. */
export type Handler<Queue extends keyof B & string = string, B extends Bodies = Bodies, Tx = unknown> = (
  message: MessageFrom<B, Queue>,
  context: Context<B, Tx>,
) => unknown

/** The same for many messages at once: throwing fails those that are not decided. */
export type BatchHandler<Queue extends keyof B & string = string, B extends Bodies = Bodies, Tx = unknown> = (
  messages: readonly MessageFrom<B, Queue>[],
  context: BatchContext<B, Tx>,
) => unknown
