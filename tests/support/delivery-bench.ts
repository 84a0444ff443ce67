// One delivery over fake parts: leases that nobody wrote, the real check of follow-on messages, a clock that stands still.
import type { BodyRules } from '../../packages/postbox/src/core/body-rules.ts'
import { draftFollowOn } from '../../packages/postbox/src/core/follow-on-draft.ts'
import type { BatchHandler, Handler } from '../../packages/postbox/src/core/handler.ts'
import type { Lease } from '../../packages/postbox/src/core/lease.ts'
import type { LogEntry } from '../../packages/postbox/src/core/log.ts'
import { type Middleware, skinsOf } from '../../packages/postbox/src/core/middleware.ts'
import type { Outcome } from '../../packages/postbox/src/core/outcome.ts'
import {
  resolveSubscribeOptions,
  type SubscribeOptions,
} from '../../packages/postbox/src/core/subscribe-options.ts'
import { createAlarms } from '../../packages/postbox/src/runtime/alarms.ts'
import { type DeliveryTools, deliver } from '../../packages/postbox/src/runtime/deliver.ts'
import { type Held, heldOf } from '../../packages/postbox/src/runtime/held.ts'
import { LazyController } from '../../packages/postbox/src/runtime/lazy-controller.ts'
import type { Subscription } from '../../packages/postbox/src/runtime/subscription.ts'
import { fakeClock } from './fake-clock.ts'
import { recordedEvents } from './recorded-events.ts'

/** A lease of thirty seconds on a message with a body of JSON, that was claimed at the beginning of time. */
export function leaseOf(given: Partial<Lease> = {}): Held {
  const { seq = '1' } = given
  const fixed = { token: 'token', id: `id-${seq}`, seq, queue: 'orders', key: null, timerId: null }
  const stored = { body: Buffer.from(`{"n":${seq}}`), headers: {}, generation: null }
  const counted = { attempt: 1, deliveries: 1, createdAt: new Date(0), firstAttemptAt: null }
  return heldOf({ ...fixed, ...stored, ...counted, claimedAt: new Date(0), ...given }, 30_000, 0)
}

export const leasesUpTo = (count: number): Held[] =>
  Array.from({ length: count }, (_, index) => leaseOf({ seq: `${index + 1}` }))

const rulesOfAny: BodyRules = { queues: null, codec: undefined, maxBodyBytes: 1_000 }

export function subscriptionOf(run: Subscription['run'], options: SubscribeOptions = {}): Subscription {
  const settings = resolveSubscribeOptions(options)
  return { queues: ['orders'], name: 'ship', run, settings, rules: rulesOfAny }
}

export const each = (handler: Handler): Subscription['run'] => ({ kind: 'each', handler })

export const batch = (handler: BatchHandler, size = 10, maxWaitMs = 50): Subscription['run'] => ({
  kind: 'batch',
  handler,
  size,
  maxWaitMs,
})

interface Given {
  readonly middleware?: readonly Middleware[]
  readonly rules?: BodyRules
  readonly isHeard?: boolean
  readonly transact?: DeliveryTools['transact']
}

const noTransactions: DeliveryTools['transact'] = () => Promise.reject(new Error('no transactions here'))

export function toolsOf(given: Given = {}) {
  const { middleware = [], rules = rulesOfAny, isHeard = true, transact = noTransactions } = given
  const clock = fakeClock()
  const { teller, told } = recordedEvents({ isHeard })
  const logged: LogEntry[] = []
  /** The leases of each call. */
  const extended: (readonly Held[])[] = []
  let made = 0
  const newId = (): string => `00000000-0000-4000-8000-${String(++made).padStart(12, '0')}`
  const drafting = { ...rules, generation: null, source: null, newId }
  const tools = {
    clock,
    alarms: createAlarms(clock),
    teller,
    log: (entry) => void logged.push(entry),
    consumeSkins: skinsOf(middleware, 'consume'),
    draft: (publication) => draftFollowOn({ ...drafting, middleware }, publication),
    extend: async (helds) => void extended.push(helds),
    transact,
  } satisfies DeliveryTools
  return { tools, clock, told, logged, extended }
}

/** A handler, and what its deliveries come to. */
export function deliveryOf(run: Subscription['run'], options: SubscribeOptions = {}, given: Given = {}) {
  const bench = toolsOf(given)
  const controller = new LazyController()
  const subscription = { ...subscriptionOf(run, options), rules: given.rules ?? rulesOfAny }
  const all = (helds: readonly Held[]): Promise<readonly Outcome[]> =>
    deliver(helds, { subscription, controller }, bench.tools)
  const one = async (held: Held = leaseOf()): Promise<Outcome> => (await all([held]))[0] as Outcome
  return { ...bench, controller, all, one }
}

/** Rejections that nobody handled while it worked, as the process hears of them. */
export async function unhandledWhile(work: () => Promise<unknown>): Promise<readonly unknown[]> {
  const heard: unknown[] = []
  const hear = (reason: unknown): void => void heard.push(reason)
  // The runner of the tests listens, too, and would fail the run: here they are what is looked for.
  const others = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', hear)
  try {
    await work()
    // They are told after the microtasks of a turn.
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
  } finally {
    process.off('unhandledRejection', hear)
    for (const other of others) process.on('unhandledRejection', other)
  }
  return heard
}
