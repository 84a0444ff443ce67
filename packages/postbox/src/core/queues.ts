// biome-ignore-all lint/suspicious/noExplicitAny: In and Out are inferred from the schema, and `unknown` is not assignable to them
import type { Codec } from './codec.ts'
import type { StandardSchema } from './standard-schema.ts'

/** What a queue is: a property of the queue, shared by everybody who publishes to it or subscribes to it. */
export interface QueueDefinition {
  /** Any Standard Schema (zod, valibot, arktype …), or `typed<Order>()`. Absent: `unknown`. */
  readonly body?: StandardSchema<any, any>
  /** How bodies become bytes. @default the outbox's codec: JSON */
  readonly codec?: Codec
  /**
   * `key`: messages of one key are handled one at a time, in the order of their commits, whatever the number of processes; those of different keys
   * beside each other, and those without a key as in any queue. Publishers of one key wait for each other's commit. @default 'none'
   */
  readonly order?: 'none' | 'key'
}

export type QueueMap = Readonly<Record<string, QueueDefinition>>

/**
 * Queue name → what may be published and what handlers get. Resolved once, at createOutbox, so that error messages
 * print `"orders" | "emails"` and not the whole map of schemas; `infer` makes the compiler forget how it came about.
 */
export type BodiesOf<M extends QueueMap> = {
  readonly [Q in keyof M & string]: { readonly in: Input<M[Q]>; readonly out: Output<M[Q]> }
} extends infer B extends Bodies
  ? B
  : never

/** Any map of resolved bodies. */
export type Bodies = Readonly<Record<string, { readonly in: unknown; readonly out: unknown }>>

type Input<D> = D extends { readonly body: StandardSchema<infer I, any> } ? I : unknown
type Output<D> = D extends { readonly body: StandardSchema<any, infer O> } ? O : unknown

/**
 * Names a set of queues once, to share it between the services and modules that use them.
 *
 * @example
 * export const queues = defineQueues({ orders: { body: typed<Order>() }, emails: {} })
 */
export function defineQueues<const M extends QueueMap>(queues: M): M {
  return Object.freeze(queues)
}

/**
 * A body type without a schema library: checked by the compiler, not at run time.
 *
 * @example
 * queues: { emails: { body: typed<{ to: string }>() } }
 */
export function typed<T>(): StandardSchema<T, T> {
  return typedSchema as StandardSchema<T, T>
}

const typedSchema: StandardSchema<any, any> = Object.freeze({
  '~standard': Object.freeze({ version: 1, vendor: 'postbox', validate: (value: unknown) => ({ value }) }),
})

/** True for `typed<T>()`: there is nothing to run, and nothing that would catch a Date that became a string. */
export function isTypeOnly(schema: StandardSchema): boolean {
  return schema === typedSchema
}

/** Whether the queue's messages are in the order of their keys. */
export function isOrdered(queues: QueueMap | null, queue: string): boolean {
  return queues !== null && Object.hasOwn(queues, queue) && queues[queue]?.order === 'key'
}
