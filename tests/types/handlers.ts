// What handlers decide and publish, handlers of several queues and of batches, and the options that go with them.
import type { PoolClient } from 'pg'
import type { BatchContext, BodiesOf, Context, Failure, FollowOn, Message, RetryPolicy } from 'postbox'
import { adr054, constant, exponential, linear, noRetry, TerminalError } from 'postbox'
import { expectTypeOf } from 'vitest'
import type { Email } from './shop.ts'
import { outbox, type queues } from './shop.ts'

type Order = { orderId: number }
type Shop = BodiesOf<typeof queues>
const email = { to: 'ann@example.org', subject: 'Hello' }

// Decisions.
outbox.subscribe('orders', (_, context) => {
  context.ack()
  context.retry()
  context.retry({ afterMs: 1_000, error: new Error('later') })
  context.reject('no such customer')
  context.reject(new Error('no such customer'))
  context.snooze(1_000)
  context.log.info('seen', { some: 'field' })
  expectTypeOf(context.lease.extend()).resolves.toEqualTypeOf<void>()
  // @ts-expect-error: a misspelt option
  context.retry({ after: 1_000 })
  // @ts-expect-error: neither a text nor an error
  context.reject({ reason: 'no such customer' })
  // @ts-expect-error: for how long?
  context.snooze()
  // @ts-expect-error: a batch decides about its messages, a handler of one about its own
  context.ack('orders')
})

// Follow-ons are typed as publishing is.
outbox.subscribe('orders', async (_, context) => {
  expectTypeOf(await context.publish('emails', email)).toEqualTypeOf<FollowOn | null>()
  await context.publish('emails', email, { key: 'customer-7', delayMs: 1_000, timerId: 'reminder' })
  // @ts-expect-error: there is no such queue
  await context.publish('emials', email)
  // @ts-expect-error: the body of another queue
  await context.publish('emails', { orderId: 1 })
  // @ts-expect-error: the body is missing
  await context.publish('emails')
  // @ts-expect-error: a misspelt option
  await context.publish('emails', email, { delay: 1_000 })
})
// A helper that knows nothing of the queues takes any context.
declare function audit(message: Message, context: Context): void
outbox.subscribe('orders', audit)
outbox.subscribe(['orders', 'emails'], audit)

// Several queues: a union, told apart by `queue`.
outbox.subscribe(['orders', 'emails'], (message, context) => {
  expectTypeOf(message).toEqualTypeOf<Message<'orders', Order> | Message<'emails', Email>>()
  expectTypeOf(context).toEqualTypeOf<Context<Shop, PoolClient>>()
  if (message.queue === 'orders') expectTypeOf(message.body).toEqualTypeOf<Order>()
  else expectTypeOf(message.body).toEqualTypeOf<Email>()
  // @ts-expect-error: it may be an email
  message.body.orderId
})
outbox.subscribe(['orders'], ({ body }) => expectTypeOf(body).toEqualTypeOf<Order>())
const listed = ['orders', 'emails'] as const
outbox.subscribe(listed, ({ queue }) => expectTypeOf(queue).toEqualTypeOf<'emails' | 'orders'>())
// @ts-expect-error: there is no such queue in the list
outbox.subscribe(['orders', 'emials'], () => {})
// @ts-expect-error: a handler of only one of them
outbox.subscribe(['orders', 'emails'], (message: Message<'orders', Order>) => message.id)

// Batches.
outbox.subscribeBatch('orders', (messages, context) => {
  expectTypeOf(messages).toEqualTypeOf<readonly Message<'orders', Order>[]>()
  expectTypeOf(context).toEqualTypeOf<BatchContext<Shop, PoolClient>>()
  for (const message of messages) {
    context.ack(message)
    context.retry(message, { afterMs: 1_000 })
    context.reject(message, 'no such customer')
    context.snooze(message, 1_000)
    context.publish(message, { queue: 'emails', body: email, options: { key: 'a' } })
    // @ts-expect-error: there is no such queue
    context.publish(message, { queue: 'emials', body: email })
    // @ts-expect-error: the body of another queue
    context.publish(message, { queue: 'emails', body: { orderId: 1 } })
  }
  // @ts-expect-error: which one?
  context.ack()
  // @ts-expect-error: read-only
  messages.pop()
})
outbox.subscribeBatch('orders', async () => {}, { size: 500, maxWaitMs: 0, concurrency: 1, retry: noRetry() })
// @ts-expect-error: a batch is of one queue
outbox.subscribeBatch(['orders', 'emails'], () => {})
// @ts-expect-error: there is no such queue
outbox.subscribeBatch('ordesr', () => {})
// @ts-expect-error: a handler of one message
outbox.subscribeBatch('orders', (message: Message<'orders', Order>) => message.id)
// @ts-expect-error: a misspelt option
outbox.subscribeBatch('orders', () => {}, { sise: 5 })
// @ts-expect-error: an option of batches
outbox.subscribe('orders', () => {}, { size: 5 })

// Policies.
for (const policy of [
  exponential(),
  exponential({
    initialMs: 1_000,
    factor: 2,
    maxMs: 300_000,
    jitter: 'full',
    maxAttempts: 10,
    maxTotalMs: 1,
  }),
  exponential({ maxAttempts: null, jitter: 0.5 }),
  linear({ initialMs: 1_000, stepMs: 500, jitter: 'equal' }),
  constant({ delayMs: 1_000, jitter: 'none', maxAttempts: 3 }),
  noRetry(),
  adr054(),
]) {
  expectTypeOf(policy).toEqualTypeOf<RetryPolicy>()
  outbox.subscribe('orders', () => {}, { retry: policy })
}
outbox.subscribe('orders', () => {}, {
  retry: (failure) => {
    expectTypeOf(failure).toEqualTypeOf<Failure>()
    return failure.attempt < 3 ? failure.random() * 1_000 : null
  },
})
// @ts-expect-error: a misspelt option
exponential({ maxAttempt: 3 })
// @ts-expect-error: how long?
constant({ maxAttempts: 3 })
// @ts-expect-error: no such jitter
exponential({ jitter: 'half' })
// @ts-expect-error: a policy is a function
outbox.subscribe('orders', () => {}, { retry: { maxAttempts: 3 } })
// @ts-expect-error: a policy is not asked twice: it cannot be awaited
outbox.subscribe('orders', () => {}, { retry: async () => 1_000 })
// @ts-expect-error: a duration is a number
outbox.subscribe('orders', () => {}, { retry: () => '1 s' })

// What becomes of failures.
class NoSuchCustomer extends Error {
  readonly customer: string
  constructor(customer: string) {
    super(customer)
    this.customer = customer
  }
}
outbox.subscribe(
  'orders',
  () => Promise.reject(new TerminalError('never', { cause: new NoSuchCustomer('7') })),
  {
    maxDeliveries: null,
    ack: 'reject-on-error',
    terminalErrors: [NoSuchCustomer, TypeError],
    classify: (error) => (error instanceof RangeError ? 'terminal' : undefined),
    propagateHeaders: ['traceparent'],
  },
)
outbox.subscribe('orders', () => {}, { ack: 'manual', maxDeliveries: 3, propagateHeaders: true })
// @ts-expect-error: no such way to acknowledge
outbox.subscribe('orders', () => {}, { ack: 'automatic' })
// @ts-expect-error: no such verdict
outbox.subscribe('orders', () => {}, { classify: () => 'fatal' })
// @ts-expect-error: classes, not errors
outbox.subscribe('orders', () => {}, { terminalErrors: [new NoSuchCustomer('7')] })
// @ts-expect-error: off is null
outbox.subscribe('orders', () => {}, { maxDeliveries: false })
// @ts-expect-error: names in a list
outbox.subscribe('orders', () => {}, { propagateHeaders: 'traceparent' })
