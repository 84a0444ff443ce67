import type { Refusal } from './adapters/refusal.ts'
import type { PendingMessage, Receipt } from './core/message.ts'
import type { PublishOptions } from './core/publish-options.ts'
import type { Bodies } from './core/queues.ts'
import type { PendingOptions } from './publish.ts'

/** null only where a `timerId` is given: a waiting timer of that name was kept. */
export type ReceiptFor<O> = O extends { readonly timerId: string } ? Receipt | null : Receipt

/** Options for all bodies of a batch, or for each. */
export type EachOptions<Body> = PublishOptions | ((body: Body, index: number) => PublishOptions)

type ReceiptsFor<O> = O extends (body: never, index: number) => infer Each ? ReceiptFor<Each> : ReceiptFor<O>

/** Publishes in a transaction that is already known: `outbox.in(tx)`, `outbox.current`. */
export interface Publisher<B extends Bodies> {
  publish<Q extends keyof B & string, const O extends PublishOptions = Record<never, never>>(
    queue: Q,
    body: B[Q]['in'],
    options?: O,
  ): Promise<ReceiptFor<O>>
  publishMany<Q extends keyof B & string, const O extends EachOptions<B[Q]['in']> = Record<never, never>>(
    queue: Q,
    bodies: readonly B[Q]['in'][],
    options?: O,
  ): Promise<readonly ReceiptsFor<O>[]>
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
  publish<H, Q extends keyof B & string, const O extends PublishOptions = Record<never, never>>(
    tx: H & Refusal<NoInfer<H>>,
    queue: Q,
    body: B[Q]['in'],
    options?: O,
  ): Promise<ReceiptFor<O>>
  /** Any number of messages of one queue in one statement; receipts stand in the order of the bodies. */
  publishMany<H, Q extends keyof B & string, const O extends EachOptions<B[Q]['in']> = Record<never, never>>(
    tx: H & Refusal<NoInfer<H>>,
    queue: Q,
    bodies: readonly B[Q]['in'][],
    options?: O,
  ): Promise<readonly ReceiptsFor<O>[]>
  /** Deletes a waiting timer; true when this call did. Not while its handler runs. Final when you commit. */
  cancelTimer<H, Q extends keyof B & string>(
    tx: H & Refusal<NoInfer<H>>,
    queue: Q,
    timerId: string,
  ): Promise<boolean>
  /** What waits, oldest first, as your transaction sees it: your own rows, future ones and those in flight included. */
  pending<H>(
    tx: H & Refusal<NoInfer<H>>,
    options?: PendingOptions & { readonly queue?: keyof B & string },
  ): Promise<readonly PendingMessage[]>
}
