// Publishing: queue names, bodies, options and receipts, by every way there is.
import type { EachOptions, PendingMessage, Publisher, PublishOptions, Receipt } from 'postbox'
import { expectTypeOf } from 'vitest'
import { outbox, poolClient } from './shop.ts'

type MaybeReceipt = Receipt | null

const order = { orderId: 1 }
const bound = outbox.in(poolClient)
const { current } = outbox

// A wrong queue, a wrong body, a missing body.
// @ts-expect-error: there is no such queue
await outbox.publish(poolClient, 'ordesr', order)
// @ts-expect-error: the body of another queue
await outbox.publish(poolClient, 'emails', order)
// @ts-expect-error: the body is missing
await outbox.publish(poolClient, 'orders')
// @ts-expect-error: the queue is missing
await outbox.publish(poolClient, order)
// @ts-expect-error: there is no such queue
await outbox.publishMany(poolClient, 'ordesr', [order])
// @ts-expect-error: one of the bodies is wrong
await outbox.publishMany(poolClient, 'orders', [order, { orderId: '2' }])
// @ts-expect-error: bodies are a list
await outbox.publishMany(poolClient, 'orders', order)
// @ts-expect-error: there is no such queue
await outbox.publishNow('ordesr', order)
// @ts-expect-error: a wrong body
await outbox.publishNow('orders', { orderId: '1' })
// @ts-expect-error: publishNow takes no transaction
await outbox.publishNow(poolClient, 'orders', order)
// @ts-expect-error: there is no such queue
await bound.publish('ordesr', order)
// @ts-expect-error: a wrong body
await bound.publish('orders', { orderId: '1' })
// @ts-expect-error: the transaction is already known
await bound.publish(poolClient, 'orders', order)
// @ts-expect-error: there is no such queue
await current.publish('ordesr', order)
// @ts-expect-error: a wrong body
await current.publishMany('orders', [{ orderId: '1' }])

// Options.
await outbox.publish(poolClient, 'orders', order, {
  key: 'customer-7',
  headers: { origin: 'shop' },
  correlationId: 'checkout-1',
  contentType: 'application/json',
  delayMs: 1_000,
  timerId: 'reminder',
  onConflict: 'replace',
  id: '018f0000-0000-7000-8000-000000000000',
})
await outbox.publish(poolClient, 'orders', order, { at: new Date() })
await outbox.publish(poolClient, 'orders', order, { at: { epochMilliseconds: 0 } })
// @ts-expect-error: after a delay or at a time, not both
await outbox.publish(poolClient, 'orders', order, { delayMs: 1, at: new Date() })
// @ts-expect-error: after a delay or at a time, not both
await outbox.publishMany(poolClient, 'orders', [order], { delayMs: 1, at: new Date() })
// @ts-expect-error: a string is no time
await outbox.publish(poolClient, 'orders', order, { at: '2026-01-01T00:00:00Z' })
// @ts-expect-error: nor is a number, whose unit nobody knows
await outbox.publish(poolClient, 'orders', order, { at: 1_767_225_600_000 })
// @ts-expect-error: a delay is a number
await outbox.publish(poolClient, 'orders', order, { delayMs: '1000' })
// @ts-expect-error: an unknown option
await outbox.publish(poolClient, 'orders', order, { delay: 1_000 })
// @ts-expect-error: an unknown option
await outbox.publishMany(poolClient, 'orders', [order], { delay: 1_000 })
// @ts-expect-error: an unknown option
await outbox.publishNow('orders', order, { timerid: 'reminder' })
// @ts-expect-error: an unknown option
await bound.publish('orders', order, { timerid: 'reminder' })
// @ts-expect-error: an unknown option beside a right one
await outbox.publish(poolClient, 'orders', order, { key: 'a', delay: 1_000 })
// @ts-expect-error: an unknown option beside a right one
await outbox.publishMany(poolClient, 'orders', [order], { key: 'a', delay: 1_000 })
// @ts-expect-error: an unknown option beside a right one
await current.publish('orders', order, { key: 'a', delay: 1_000 })
// @ts-expect-error: headers are strings
await outbox.publish(poolClient, 'orders', order, { headers: { attempt: 1 } })
// @ts-expect-error: keep or replace
await outbox.publish(poolClient, 'orders', order, { timerId: 'reminder', onConflict: 'ignore' })

// A receipt, or perhaps null where a timer is named.
const timer = { timerId: 'reminder' } as const
expectTypeOf(await outbox.publish(poolClient, 'orders', order)).toEqualTypeOf<Receipt>()
expectTypeOf(await outbox.publish(poolClient, 'orders', order, {})).toEqualTypeOf<Receipt>()
expectTypeOf(await outbox.publish(poolClient, 'orders', order, { key: 'a' })).toEqualTypeOf<Receipt>()
expectTypeOf(await outbox.publish(poolClient, 'orders', order, { delayMs: 1 })).toEqualTypeOf<Receipt>()
expectTypeOf(await outbox.publish(poolClient, 'orders', order, timer)).toEqualTypeOf<MaybeReceipt>()
expectTypeOf(
  await outbox.publish(poolClient, 'orders', order, { timerId: 'reminder', delayMs: 1 }),
).toEqualTypeOf<MaybeReceipt>()
expectTypeOf(await outbox.publishNow('orders', order)).toEqualTypeOf<Receipt>()
expectTypeOf(await outbox.publishNow('orders', order, timer)).toEqualTypeOf<MaybeReceipt>()
expectTypeOf(await bound.publish('orders', order)).toEqualTypeOf<Receipt>()
expectTypeOf(await bound.publish('orders', order, timer)).toEqualTypeOf<MaybeReceipt>()
expectTypeOf(await current.publish('orders', order)).toEqualTypeOf<Receipt>()
expectTypeOf(await current.publish('orders', order, timer)).toEqualTypeOf<MaybeReceipt>()

// Where the options are not known here, they may name a timer.
declare const given: PublishOptions
declare const perhapsTimer: { timerId?: string; key: string }
expectTypeOf(await outbox.publish(poolClient, 'orders', order, given)).toEqualTypeOf<MaybeReceipt>()
expectTypeOf(await outbox.publishNow('orders', order, perhapsTimer)).toEqualTypeOf<MaybeReceipt>()
expectTypeOf(await bound.publishMany('orders', [order], given)).toEqualTypeOf<readonly MaybeReceipt[]>()

// What may be undefined counts as absent: no option has to be spread in conditionally.
declare const maybe: string | undefined
declare const maybeAt: Date | undefined
declare const maybeDelayMs: number | undefined
declare const maybeHeaders: Record<string, string> | undefined
declare const maybeConflict: 'keep' | 'replace' | undefined
expectTypeOf(await outbox.publish(poolClient, 'orders', order, { key: maybe })).toEqualTypeOf<Receipt>()
expectTypeOf(await outbox.publish(poolClient, 'orders', order, { at: maybeAt })).toEqualTypeOf<Receipt>()
expectTypeOf(await outbox.publishNow('orders', order, { delayMs: maybeDelayMs })).toEqualTypeOf<Receipt>()
expectTypeOf(
  await bound.publish('orders', order, {
    key: maybe,
    headers: maybeHeaders,
    correlationId: maybe,
    contentType: maybe,
    id: maybe,
  }),
).toEqualTypeOf<Receipt>()
expectTypeOf(await current.publishMany('orders', [order], { key: maybe, at: maybeAt })).toEqualTypeOf<
  readonly Receipt[]
>()
expectTypeOf(await bound.publishMany('orders', [order], () => ({ key: maybe }))).toEqualTypeOf<
  readonly Receipt[]
>()
await outbox.publish(poolClient, 'orders', order, { delayMs: 1, at: undefined })
await outbox.publish(poolClient, 'orders', order, { delayMs: undefined, at: new Date() })
// A timer that may be there makes a receipt that may be null.
expectTypeOf(
  await outbox.publish(poolClient, 'orders', order, { timerId: maybe }),
).toEqualTypeOf<MaybeReceipt>()
expectTypeOf(
  await bound.publish('orders', order, { timerId: maybe, at: maybeAt, onConflict: maybeConflict }),
).toEqualTypeOf<MaybeReceipt>()
expectTypeOf(await outbox.publishNow('orders', order, { timerId: maybe })).toEqualTypeOf<MaybeReceipt>()
expectTypeOf(await current.publishMany('orders', [order], { timerId: maybe })).toEqualTypeOf<
  readonly MaybeReceipt[]
>()
expectTypeOf(await bound.publishMany('orders', [order], () => ({ timerId: maybe }))).toEqualTypeOf<
  readonly MaybeReceipt[]
>()
// @ts-expect-error: a text that may be there is no time
await outbox.publish(poolClient, 'orders', order, { at: maybe })
// @ts-expect-error: absent is undefined, not null
await outbox.publish(poolClient, 'orders', order, { key: null })
// @ts-expect-error: a delay and a time that may both be there
await outbox.publish(poolClient, 'orders', order, { delayMs: maybeDelayMs, at: maybeAt })

// The same for each of many.
expectTypeOf(await outbox.publishMany(poolClient, 'orders', [order])).toEqualTypeOf<readonly Receipt[]>()
expectTypeOf(await outbox.publishMany(poolClient, 'orders', [order], { key: 'a' })).toEqualTypeOf<
  readonly Receipt[]
>()
expectTypeOf(await outbox.publishMany(poolClient, 'orders', [order], timer)).toEqualTypeOf<
  readonly MaybeReceipt[]
>()
expectTypeOf(await bound.publishMany('orders', [order])).toEqualTypeOf<readonly Receipt[]>()
expectTypeOf(await current.publishMany('orders', [order], timer)).toEqualTypeOf<readonly MaybeReceipt[]>()
await outbox.publishMany(poolClient, 'orders', [order] as readonly { orderId: number }[])

// Options may be made for each body.
const keyOf = (body: { orderId: number }, index: number) => ({ key: `${body.orderId}-${index}` })
const timerOf = (body: { orderId: number }) => ({ timerId: `order-${body.orderId}` })
expectTypeOf(await outbox.publishMany(poolClient, 'orders', [order], keyOf)).toEqualTypeOf<
  readonly Receipt[]
>()
expectTypeOf(await outbox.publishMany(poolClient, 'orders', [order], timerOf)).toEqualTypeOf<
  readonly MaybeReceipt[]
>()
await outbox.publishMany(poolClient, 'orders', [order], (body, index) => {
  expectTypeOf(body).toEqualTypeOf<{ orderId: number }>()
  expectTypeOf(index).toEqualTypeOf<number>()
  return { key: 'a' }
})
expectTypeOf(
  await bound.publishMany('orders', [order], ({ orderId }) => (orderId > 1 ? { timerId: 'a' } : {})),
).toEqualTypeOf<readonly MaybeReceipt[]>()
type Each = Extract<EachOptions<{ orderId: number }>, (...parameters: never[]) => unknown>
expectTypeOf<Parameters<Each>>().toEqualTypeOf<[body: { orderId: number }, index: number]>()
// @ts-expect-error: a function over the bodies of another queue
await outbox.publishMany(poolClient, 'emails', [], keyOf)
// @ts-expect-error: it makes no options
await outbox.publishMany(poolClient, 'orders', [order], () => ({ kee: 'a' }))

// Bound and ambient publishers are the same thing; `within` gives what the work gives.
expectTypeOf(bound).toEqualTypeOf(current)
expectTypeOf(bound).toExtend<Publisher<{ orders: { in: { orderId: number }; out: unknown } }>>()
expectTypeOf(await outbox.within(poolClient, async () => 42)).toEqualTypeOf<number>()
expectTypeOf(await outbox.within(poolClient, () => current.publish('orders', order))).toEqualTypeOf<Receipt>()
// @ts-expect-error: work that is not awaited would outlive the transaction
await outbox.within(poolClient, () => 42)

// Timers and what waits.
expectTypeOf(await outbox.cancelTimer(poolClient, 'orders', 'reminder')).toEqualTypeOf<boolean>()
expectTypeOf(await bound.cancelTimer('orders', 'reminder')).toEqualTypeOf<boolean>()
expectTypeOf(await outbox.pending(poolClient)).toEqualTypeOf<readonly PendingMessage[]>()
expectTypeOf(await bound.pending({ queue: 'orders', limit: 10 })).toEqualTypeOf<readonly PendingMessage[]>()
// @ts-expect-error: there is no such queue
await outbox.cancelTimer(poolClient, 'ordesr', 'reminder')
// @ts-expect-error: there is no such queue
await current.cancelTimer('ordesr', 'reminder')
// @ts-expect-error: the timer is missing
await outbox.cancelTimer(poolClient, 'orders')
// @ts-expect-error: there is no such queue
await outbox.pending(poolClient, { queue: 'ordesr' })
// @ts-expect-error: there is no such queue
await current.pending({ queue: 'ordesr' })
// @ts-expect-error: an unknown option
await outbox.pending(poolClient, { queue: 'orders', max: 10 })

// What comes back cannot be changed.
const receipt = await outbox.publish(poolClient, 'orders', order)
const many = await outbox.publishMany(poolClient, 'orders', [order])
const [waiting] = await outbox.pending(poolClient)
// @ts-expect-error: read-only
receipt.id = ''
// @ts-expect-error: read-only
many[0] = receipt
// @ts-expect-error: read-only
waiting!.body = null
// @ts-expect-error: `noUncheckedIndexedAccess`: there may be none
waiting.body
// @ts-expect-error: read-only
given.key = 'a'
