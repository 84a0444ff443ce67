import type { TransactionLike } from './adapters/transaction-like.ts'
import type { PendingMessage, Receipt } from './core/message.ts'
import type { PublishOptions } from './core/publish-options.ts'
import type { Bodies } from './core/queues.ts'
import type { PendingOptions } from './pending.ts'

/** null only where there may be a `timerId`: a waiting timer of that name was kept. */
export type ReceiptFor<TimerId> = [TimerId] extends [never] ? Receipt : Receipt | null

/** Options for all bodies of a batch, or for each. */
export type EachOptions<Body, TimerId extends string = string> =
  | PublishOptions<TimerId>
  | ((body: Body, index: number) => PublishOptions<TimerId>)

/** Publishes in a transaction that is already known: `outbox.in(tx)`, `outbox.current`. */
export interface Publisher<B extends Bodies> {
  publish<Q extends keyof B & string, TimerId extends string = never>(
    queue: Q,
    body: B[Q]['in'],
    options?: PublishOptions<TimerId>,
  ): Promise<ReceiptFor<TimerId>>
  publishMany<Q extends keyof B & string, TimerId extends string = never>(
    queue: Q,
    bodies: readonly B[Q]['in'][],
    options?: EachOptions<B[Q]['in'], TimerId>,
  ): Promise<readonly ReceiptFor<TimerId>[]>
  cancelTimer<Q extends keyof B & string>(queue: Q, timerId: string): Promise<boolean>
  pending(
    options?: PendingOptions & { readonly queue?: keyof B & string },
  ): Promise<readonly PendingMessage[]>
}

/** Publishes in the transaction that is passed first, whatever client owns it. */
export interface TransactionPublisher<B extends Bodies> {
  /**
   * Writes a message in your transaction: it is delivered if you commit and never seen if you roll back. One statement;
   * nothing is begun, committed or flushed.
   *
   * @example
   * await outbox.publish(tx, 'orders', { orderId: 1 }, { key: 'customer-7' })
   */
  publish<H, Q extends keyof B & string, TimerId extends string = never>(
    tx: TransactionLike<H>,
    queue: Q,
    body: B[Q]['in'],
    options?: PublishOptions<TimerId>,
  ): Promise<ReceiptFor<TimerId>>
  /** Any number of messages of one queue in one statement; receipts stand in the order of the bodies. */
  publishMany<H, Q extends keyof B & string, TimerId extends string = never>(
    tx: TransactionLike<H>,
    queue: Q,
    bodies: readonly B[Q]['in'][],
    options?: EachOptions<B[Q]['in'], TimerId>,
  ): Promise<readonly ReceiptFor<TimerId>[]>
  /** Deletes a waiting timer; true when this call did. Not while its handler runs. Final when you commit. */
  cancelTimer<H, Q extends keyof B & string>(
    tx: TransactionLike<H>,
    queue: Q,
    timerId: string,
  ): Promise<boolean>
  /** What waits, oldest first, as your transaction sees it: your own rows, future ones and those in flight included. */
  pending<H>(
    tx: TransactionLike<H>,
    options?: PendingOptions & { readonly queue?: keyof B & string },
  ): Promise<readonly PendingMessage[]>
}
