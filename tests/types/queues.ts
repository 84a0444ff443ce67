// Queues: what may be published is the schema's input, what handlers get is its output.
import { type } from 'arktype'
import type { Bodies, BodiesOf, Outbox } from 'postbox'
import { createOutbox, defineQueues, typed } from 'postbox'
import * as v from 'valibot'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import type { Email } from './shop.ts'
import { poolClient } from './shop.ts'

const queues = defineQueues({
  zod: { body: z.object({ orderId: z.number() }) },
  valibot: { body: v.object({ orderId: v.number() }) },
  arktype: { body: type({ orderId: 'number' }) },
  typed: { body: typed<Email>() },
  trimmed: { body: z.object({ length: z.string().transform((text) => text.length) }) },
  coerced: { body: z.object({ at: z.coerce.date<string>(), note: z.string().default('') }) },
  valibotParsed: { body: v.object({ at: v.pipe(v.string(), v.transform(Number)) }) },
  arktypeParsed: { body: type({ at: 'string.numeric.parse' }) },
  open: {},
})
const outbox = createOutbox({ queues })

// Every kind of schema takes its body.
await outbox.publish(poolClient, 'zod', { orderId: 1 })
await outbox.publish(poolClient, 'valibot', { orderId: 1 })
await outbox.publish(poolClient, 'arktype', { orderId: 1 })
await outbox.publish(poolClient, 'typed', { to: 'ann@example.org', subject: 'Hello' })

// Every kind of schema refuses another body.
// @ts-expect-error: orderId is a number
await outbox.publish(poolClient, 'zod', { orderId: '1' })
// @ts-expect-error: orderId is a number
await outbox.publish(poolClient, 'valibot', { orderId: '1' })
// @ts-expect-error: orderId is a number
await outbox.publish(poolClient, 'arktype', { orderId: '1' })
// @ts-expect-error: subject is missing
await outbox.publish(poolClient, 'typed', { to: 'ann@example.org' })
// @ts-expect-error: the body of another queue
await outbox.publish(poolClient, 'typed', { orderId: 1 })
// @ts-expect-error: an unknown property of a body is a typing error
await outbox.publish(poolClient, 'zod', { orderId: 1, orderID: 1 })

// Publishing takes the input …
await outbox.publish(poolClient, 'trimmed', { length: 'four' })
await outbox.publish(poolClient, 'coerced', { at: '2026-01-01' })
await outbox.publish(poolClient, 'valibotParsed', { at: '1' })
await outbox.publish(poolClient, 'arktypeParsed', { at: '1' })
// @ts-expect-error: the output of the transform is not its input
await outbox.publish(poolClient, 'trimmed', { length: 4 })
// @ts-expect-error: the coerced type is not what is published
await outbox.publish(poolClient, 'coerced', { at: new Date() })
// @ts-expect-error: the parsed type is not what is published
await outbox.publish(poolClient, 'valibotParsed', { at: 1 })
// @ts-expect-error: the parsed type is not what is published
await outbox.publish(poolClient, 'arktypeParsed', { at: 1 })

// … and handlers get the output.
outbox.subscribe('zod', ({ body }) => expectTypeOf(body).toEqualTypeOf<{ orderId: number }>())
outbox.subscribe('valibot', ({ body }) => expectTypeOf(body).toEqualTypeOf<{ orderId: number }>())
outbox.subscribe('arktype', ({ body }) => expectTypeOf(body).toEqualTypeOf<{ orderId: number }>())
outbox.subscribe('typed', ({ body }) => expectTypeOf(body).toEqualTypeOf<Email>())
outbox.subscribe('trimmed', ({ body }) => expectTypeOf(body).toEqualTypeOf<{ length: number }>())
outbox.subscribe('coerced', ({ body }) => expectTypeOf(body).toEqualTypeOf<{ at: Date; note: string }>())
outbox.subscribe('valibotParsed', ({ body }) => expectTypeOf(body).toEqualTypeOf<{ at: number }>())
outbox.subscribe('arktypeParsed', ({ body }) => expectTypeOf(body).toEqualTypeOf<{ at: number }>())

// A queue without a schema carries anything, and its handler must look.
await outbox.publish(poolClient, 'open', { any: ['thing'] })
await outbox.publish(poolClient, 'open', null)
outbox.subscribe('open', ({ body }) => expectTypeOf(body).toEqualTypeOf<unknown>())

// Without `queues`: any name, unknown bodies.
const untyped = createOutbox()
await untyped.publish(poolClient, 'whatever', { any: ['thing'] })
untyped.subscribe('whatever', ({ body, queue }) => {
  expectTypeOf(body).toEqualTypeOf<unknown>()
  expectTypeOf(queue).toEqualTypeOf<'whatever'>()
})
// @ts-expect-error: a queue is named by a string
await untyped.publish(poolClient, 1, {})

// A map is shared as it is: each outbox made from it has the same types.
const other = createOutbox({ queues, table: 'other' })
expectTypeOf(other).toEqualTypeOf(outbox)
expectTypeOf<BodiesOf<typeof queues>['coerced']['in']>().toEqualTypeOf<{
  at: string
  note?: string | undefined
}>()
expectTypeOf<BodiesOf<typeof queues>['coerced']['out']>().toEqualTypeOf<{ at: Date; note: string }>()
expectTypeOf<keyof BodiesOf<typeof queues>>().toEqualTypeOf<keyof typeof queues>()

// A function may ask for an outbox that has at least the queues it needs.
type Shipping = Outbox<{ orders: { in: { orderId: number }; out: { orderId: number } } }>
declare function startShipping(outbox: Shipping): void
startShipping(createOutbox({ queues: { orders: { body: typed<{ orderId: number }>() }, emails: {} } }))
// @ts-expect-error: this outbox has no queue `orders`
startShipping(outbox)
expectTypeOf<BodiesOf<typeof queues>>().toExtend<Bodies>()

// @ts-expect-error: a schema stands in `body`
defineQueues({ orders: z.object({ orderId: z.number() }) })
// @ts-expect-error: a misspelt property of a queue
defineQueues({ orders: { boby: typed<Email>() } })
// @ts-expect-error: a body is described by a Standard Schema
defineQueues({ orders: { body: { orderId: 'number' } } })
// @ts-expect-error: a shared map cannot be changed
queues.open = {}
