import { type BatchOptions, resolveBatchOptions } from './core/batch-options.ts'
import { OutboxError } from './core/errors.ts'
import type { BatchHandler, Handler } from './core/handler.ts'
import type { OutboxSettings } from './core/outbox-options.ts'
import { isOrdered } from './core/queues.ts'
import { show } from './core/show.ts'
import { resolveSubscribeOptions, type SubscribeOptions } from './core/subscribe-options.ts'
import { assertSubscriber } from './core/subscriber.ts'
import { isRecord } from './core/validate.ts'
import type { Registry } from './runtime/runner.ts'
import type { Subscription } from './runtime/subscription.ts'

/** What subscribing needs to know of its outbox. */
export interface Subscribing {
  readonly settings: OutboxSettings
  readonly registry: Registry
}

/** Queues, handler and options; or subscribers that have all of them. */
export type SubscribeArguments = readonly [first: unknown, handler?: unknown, options?: unknown]

/** Registers one handler, or all subscribers of a list or none of them. */
export function subscribe(outbox: Subscribing, given: SubscribeArguments): void {
  const { settings: rules } = outbox
  const added = subscribersOf(given).map(({ queues: asked, handler, options }) => {
    const queues = assertSubscriber({ queues: asked, handler }, rules.queues)
    const settings = namingQueues(queues, () =>
      resolveSubscribeOptions(options as SubscribeOptions | undefined, rules.defaults),
    )
    return named({ queues, run: { kind: 'each', handler: handler as Handler }, settings, rules })
  })
  add(outbox, added)
}

export function subscribeBatch(outbox: Subscribing, [queue, handler, options]: SubscribeArguments): void {
  const { settings: rules } = outbox
  const queues = assertSubscriber({ queues: [queue], handler }, rules.queues)
  const { settings, ...sizes } = namingQueues(queues, () =>
    resolveBatchOptions(options as BatchOptions | undefined, rules.defaults),
  )
  // Of a batch some may fail, and those behind them would have been handled.
  if (queues.some((name) => isOrdered(rules.queues, name))) {
    const sentence = `queue ${show(queue)} is ordered, and messages of a key are handled one by one: use \`subscribe\``
    throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
  }
  const run = { kind: 'batch', handler: handler as BatchHandler, ...sizes } as const
  add(outbox, [named({ queues, run, settings, rules })])
}

/** A list with one subscriber in it is meant as a list of them. */
function subscribersOf([first, handler, options]: SubscribeArguments): readonly Record<string, unknown>[] {
  const listed: readonly unknown[] = Array.isArray(first) ? first : [first]
  if (!listed.some(isRecord)) return [{ queues: first, handler, options }]
  if (listed.every(isRecord) && handler === undefined && options === undefined) return listed
  const got = listed.every(isRecord) ? `${show(handler ?? options)} beside it` : show(first)
  const sentence = `expected a subscriber alone: give its handler and its options to defineSubscriber, got ${got}`
  throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
}

/** A service has many subscriptions: the error says whose options are wrong. */
export function namingQueues<T>(queues: readonly string[], resolve: () => T): T {
  try {
    return resolve()
  } catch (error) {
    throw OutboxError.at(`subscriber of ${queues.map((queue) => JSON.stringify(queue)).join(', ')}`, error)
  }
}

function named(given: Omit<Subscription, 'name'>): Subscription {
  const { queues, run, settings } = given
  const name = settings.name ?? (run.handler.name || queues.join('+'))
  return Object.freeze({ ...given, name, run: Object.freeze(run) })
}

/** All are checked before the first is added. */
function add({ registry }: Subscribing, added: readonly Subscription[]): void {
  const taken = new Set(registry.subscriptions.flatMap(({ queues }) => queues))
  for (const queue of added.flatMap(({ queues }) => queues)) {
    if (taken.has(queue)) {
      const sentence = `queue ${show(queue)} already has a subscriber in this outbox`
      throw new OutboxError('OUTBOX_DUPLICATE_SUBSCRIBER', sentence)
    }
    taken.add(queue)
  }
  for (const subscription of added) {
    registry.subscriptions.push(subscription)
    registry.onAdded?.(subscription)
  }
}
