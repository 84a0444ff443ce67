import { OutboxError } from './errors.ts'
import { assertQueue } from './queue-name.ts'
import type { Bodies, QueueMap } from './queues.ts'
import { show } from './show.ts'
import type { SubscribeOptions } from './subscribe-options.ts'
import { assertValue, callable } from './validate.ts'

/**
 * A handler with its queues and options, for a module to export: made by `defineSubscriber`, given to `outbox.subscribe`. It fits an
 * outbox that has all queues of its map: those it handles, and those that its follow-ons may go to. Where its handler says which
 * transactions it works in (`context: Context<…, PoolClient>`), an outbox that opens others is refused.
 */
export interface Subscriber<B extends Bodies = Bodies, Tx = unknown> {
  readonly queues: readonly (keyof B & string)[]
  readonly handler: (message: never, context: never) => unknown
  readonly options: SubscribeOptions | undefined
  /** For the compiler: what it asks of an outbox. (`undefined` is said, or it would be talked of in every error.) */
  readonly '~asks'?: ((outbox: Served<B>) => void) | undefined
  /** The same of its transactions. */
  readonly '~transaction'?: ((tx: Tx) => void) | undefined
}

/** What an outbox gives to handlers, and takes from them. */
type Served<B extends Bodies> = {
  readonly [Q in keyof B]: { readonly gives: B[Q]['out']; readonly takes: (body: B[Q]['in']) => void }
}

/** As it is given to subscribe: nothing of it has been checked. */
export interface SubscriberInput {
  readonly queues: unknown
  readonly handler: unknown
}

/** Checks a subscriber's queues and handler, and gives the queues as a list. Options are checked where they are resolved. */
export function assertSubscriber(
  { queues, handler }: SubscriberInput,
  known: QueueMap | null,
): readonly string[] {
  const listed: readonly unknown[] = Array.isArray(queues) ? queues : [queues]
  if (listed.length === 0) throw invalid('expected a subscriber to have a queue or several, got `[]` (array)')
  const names = Array.from(listed, (queue) => {
    assertQueue(queue, known)
    return queue
  })
  const twice = names.find((queue, index) => names.indexOf(queue) !== index)
  if (twice !== undefined) throw invalid(`expected each queue of a subscriber once, got ${show(twice)} again`)
  assertValue('OUTBOX_INVALID_OPTION', { label: 'handler', check: callable, value: handler })
  return Object.freeze(names)
}

function invalid(sentence: string): OutboxError {
  return new OutboxError('OUTBOX_INVALID_OPTION', sentence)
}
