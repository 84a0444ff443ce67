// Scenarios F-01 to F-17 and N-08 of the conformance list: publishing runs the handler.
import { describe, expect, expectTypeOf, onTestFinished, test, vi } from 'vitest'
import { stealLease } from '../../../../tests/support/steal-lease.ts'
import { type OutboxEvent, TerminalError } from '../index.ts'
import type { createOutbox } from '../outbox.ts'
import { constant, noRetry } from '../policies.ts'
import { createTestOutbox } from './create-test-outbox.ts'

const hour = 3_600_000
const quiet = { logger: false } as const
/** What an application has that the test kit does not know. */
const standIn = { anything: true } as never

async function testOutbox(options: Parameters<typeof createOutbox>[0] = {}) {
  const test = await createTestOutbox({ ...quiet, ...options })
  onTestFinished(test.dispose)
  return { test, outbox: test.outbox }
}

describe('publishing', () => {
  test('runs the handler before it returns, and leaves no row behind', async () => {
    const { test, outbox } = await testOutbox()
    const handled: unknown[] = []
    outbox.subscribe('orders', (message) => void handled.push(message.body))

    await outbox.publish(standIn, 'orders', { orderId: 1 })

    expect(handled).toEqual([{ orderId: 1 }])
    expect(test.pending()).toEqual([])
  })

  test.each([
    ['publishNow', (outbox) => outbox.publishNow('orders', 1)],
    ['publishMany', (outbox) => outbox.publishMany(standIn, 'orders', [1])],
    ['in(tx).publish', (outbox) => outbox.in(standIn).publish('orders', 1)],
    ['current.publish', (outbox) => outbox.within(standIn, () => outbox.current.publish('orders', 1))],
  ] satisfies [string, (outbox: ReturnType<typeof createOutbox>) => Promise<unknown>][])(
    '%s runs the handler before it returns',
    async (_, publish) => {
      const { outbox } = await testOutbox()
      const handler = vi.fn()
      outbox.subscribe('orders', handler)

      await publish(outbox)

      expect(handler).toHaveBeenCalledTimes(1)
    },
  )

  test('leaves a message of a newer generation where it is, replayed and drained included', async () => {
    const { test, outbox } = await testOutbox({ generation: 2 })
    const generations: unknown[] = []
    outbox.subscribe(
      'orders',
      ({ generation }) => {
        generations.push(generation)
        throw new TerminalError('no')
      },
      { retry: noRetry() },
    )
    const { id } = await outbox.publishNow('orders', 1)
    await outbox.deadLetters.replay(id, { by: 'ann', generation: 3 })

    expect(await test.drain()).toMatchObject({ acked: 0, dead: 0, isEmpty: true })

    expect(generations).toEqual([2])
    expect(test.pending()).toMatchObject([{ id, generation: 3, deliveries: 0 }])
  })

  test('a batch is in the table as a whole before its first handler, and is handled in its order', async () => {
    const { test, outbox } = await testOutbox()
    const seen: unknown[] = []
    outbox.subscribe('orders', (message) => {
      seen.push([message.body, test.published('orders').length])
    })

    await outbox.publishMany(standIn, 'orders', ['a', 'b', 'c'])

    expect(seen).toEqual([
      ['a', 3],
      ['b', 3],
      ['c', 3],
    ])
  })

  test('is told of before the handler runs', async () => {
    const events: string[] = []
    const { outbox } = await testOutbox({ onEvent: ({ kind }: OutboxEvent) => void events.push(kind) })
    outbox.subscribe('orders', () => {})

    await outbox.publish(standIn, 'orders', 1)

    expect(events).toEqual(['published', 'claimed', 'dispatched', 'acked'])
  })

  test('reaches the one subscriber of several queues', async () => {
    const { outbox } = await testOutbox()
    const handled: unknown[] = []
    outbox.subscribe(['orders', 'refunds'], ({ queue, body }) => void handled.push([queue, body]))

    await outbox.publish(standIn, 'orders', 1)
    await outbox.publish(standIn, 'refunds', 2)

    expect(handled).toEqual([
      ['orders', 1],
      ['refunds', 2],
    ])
  })

  test('to a queue without a subscriber leaves the message there', async () => {
    const { test, outbox } = await testOutbox()

    await outbox.publish(standIn, 'orders', 1)

    expect(test.pending('orders')).toMatchObject([{ body: 1, attempts: 0, deliveries: 0 }])
  })

  test('a message for later fires at once', async () => {
    const { outbox } = await testOutbox()
    const handler = vi.fn()
    outbox.subscribe('orders', handler)

    await outbox.publish(standIn, 'orders', 1, { delayMs: hour })
    await outbox.publish(standIn, 'orders', 2, { at: new Date(Date.now() + hour) })
    await outbox.publishMany(standIn, 'orders', [3, 4], { delayMs: hour })

    expect(handler).toHaveBeenCalledTimes(4)
  })

  test('what a handler publishes is handled before the first publish returns', async () => {
    const { outbox } = await testOutbox()
    const handled: unknown[] = []
    outbox.subscribe('countdown', async ({ body }) => {
      const left = body as number
      if (left > 0) await outbox.publish(standIn, 'countdown', left - 1)
      handled.push(left)
    })

    await outbox.publish(standIn, 'countdown', 25)

    expect(handled).toEqual(Array.from({ length: 26 }, (_, index) => index))
  })

  test('follow-on messages are handled before publish returns, with the correlation id of their cause', async () => {
    const { test, outbox } = await testOutbox()
    const handled: unknown[] = []
    outbox.subscribe('orders', (_, context) => void context.publish('emails', 'hello'))
    outbox.subscribe('emails', ({ body, correlationId }) => void handled.push([body, correlationId]))

    await outbox.publish(standIn, 'orders', 1, { correlationId: 'c-1' })

    expect(handled).toEqual([['hello', 'c-1']])
    expect(test.published('emails')).toMatchObject([{ body: 'hello', correlationId: 'c-1' }])
  })

  test('publishes at once wait for their own handlers', async () => {
    const { outbox } = await testOutbox()
    const ended: unknown[] = []
    outbox.subscribe('orders', async ({ body }) => {
      await new Promise((resolve) => setImmediate(resolve))
      ended.push(body)
    })

    const publishing = [1, 2, 3].map(async (body) => {
      await outbox.publish(standIn, 'orders', body)
      expect(ended).toContain(body)
    })

    await Promise.all(publishing)
    expect(ended).toHaveLength(3)
  })

  test('bad input is refused as in a real outbox', async () => {
    const { test, outbox } = await testOutbox()
    const both = { delayMs: 1, at: new Date() } as never

    await expect(outbox.publish(standIn, 'orders', 1, both)).rejects.toMatchObject({
      code: 'OUTBOX_INVALID_TIME',
    })
    await expect(outbox.publishMany(standIn, '', [])).rejects.toMatchObject({ code: 'OUTBOX_INVALID_QUEUE' })
    await expect(outbox.publish(null as never, 'orders', 1)).rejects.toMatchObject({
      code: 'OUTBOX_UNKNOWN_HANDLE',
    })
    expect(test.published()).toEqual([])
  })
})

describe('a handler', () => {
  test('that fails for good leaves a dead letter', async () => {
    const { test, outbox } = await testOutbox()
    outbox.subscribe('orders', () => Promise.reject(new Error('no')), { retry: noRetry() })

    await outbox.publish(standIn, 'orders', 1, { headers: { tenant: 'a' } })

    expect(test.pending()).toEqual([])
    expect(test.dead()).toMatchObject([
      { reason: 'retry_terminal', body: 1, headers: { tenant: 'a' }, attempts: 1 },
    ])
  })

  test('that fails is tried again later, not now', async () => {
    const { test, outbox } = await testOutbox()
    const handler = vi.fn(() => Promise.reject(new Error('no')))
    outbox.subscribe('orders', handler, { retry: constant({ delayMs: hour }) })

    await outbox.publish(standIn, 'orders', 1)

    expect(handler).toHaveBeenCalledTimes(1)
    const [waiting] = test.pending()
    expect(waiting).toMatchObject({ attempts: 1, inFlight: false })
    expect(waiting?.dueAt?.getTime()).toBe(test.now().getTime() + hour)
  })

  test("hands its very error to the policy, and the policy's no is obeyed", async () => {
    const { test, outbox } = await testOutbox()
    const errors: unknown[] = []
    const thrown = new Error('no')
    outbox.subscribe('orders', () => Promise.reject(thrown), {
      retry: ({ error }) => {
        errors.push(error)
        return null
      },
    })

    await outbox.publish(standIn, 'orders', 1)

    expect(errors).toEqual([thrown])
    expect(errors[0]).toBe(thrown)
    expect(test.dead()).toHaveLength(1)
  })

  test.each([
    ['throws a TerminalError', 'terminal_error', () => Promise.reject(new TerminalError('never'))],
    ['rejects', 'rejected', (_: unknown, context: { reject(reason: string): void }) => context.reject('no')],
  ])('that %s buries its message: %s', async (_, reason, handler) => {
    const { test, outbox } = await testOutbox()
    outbox.subscribe('orders', handler as never)

    await outbox.publish(standIn, 'orders', 1)

    expect(test.dead('orders')).toMatchObject([{ reason }])
  })

  test.each([
    ['reject-on-error', () => Promise.reject(new Error('no')), 'dead'],
    ['manual', () => {}, 'dead'],
    ['manual', () => Promise.reject(new Error('no')), 'waiting'],
    ['manual', (_: unknown, context: { ack(): void }) => context.ack(), 'gone'],
    ['auto', (_: unknown, context: { retry(): void }) => context.retry(), 'waiting'],
    ['auto', (_: unknown, context: { snooze(ms: number): void }) => context.snooze(hour), 'waiting'],
  ] as const)('with ack %s: what becomes of its message (%#)', async (ack, handler, expected) => {
    const { test, outbox } = await testOutbox()
    outbox.subscribe('orders', handler as never, { ack, retry: constant({ delayMs: hour }) })

    await outbox.publish(standIn, 'orders', 1)

    const found = test.dead().length > 0 ? 'dead' : test.pending().length > 0 ? 'waiting' : 'gone'
    expect(found).toBe(expected)
  })

  test('that publishes follow-ons and fails publishes nothing', async () => {
    const { test, outbox } = await testOutbox()
    outbox.subscribe('orders', async (_, context) => {
      await context.publish('emails', 1)
      throw new TerminalError('no')
    })

    await outbox.publish(standIn, 'orders', 1)

    expect(test.published('emails')).toEqual([])
  })

  test('of many messages gets those of one transaction together', async () => {
    const { test, outbox } = await testOutbox()
    const batches: unknown[][] = []
    outbox.subscribeBatch('orders', (messages) => void batches.push(messages.map(({ body }) => body)), {
      size: 3,
      maxWaitMs: 60_000,
    })

    await test.transaction(async (tx) => {
      for (const body of [1, 2, 3, 4]) await outbox.publish(tx, 'orders', body)
    })

    expect(batches).toEqual([[1, 2, 3], [4]])
  })

  test('runs within the middleware, and publishing does, too', async () => {
    const trace: string[] = []
    const { outbox } = await testOutbox({
      middleware: [
        {
          publish: async (call, next) => {
            trace.push(`publish ${call.queue}`)
            return next()
          },
          consume: async (delivery, next) => {
            trace.push(`consume ${delivery.queue}`)
            await next()
          },
        },
      ],
    })
    outbox.subscribe('orders', () => void trace.push('handle'))

    await outbox.publish(standIn, 'orders', 1)

    expect(trace).toEqual(['publish orders', 'consume orders', 'handle'])
  })

  test('whose message was claimed by somebody else is told of a lost lease, and nothing is written', async () => {
    const events: OutboxEvent[] = []
    const { test, outbox } = await testOutbox({ onEvent: (event: OutboxEvent) => void events.push(event) })
    outbox.subscribe('orders', ({ seq }) => stealLease(outbox, seq))

    await outbox.publish(standIn, 'orders', 1)

    const ends = events.filter(({ kind }) => kind === 'acked' || kind === 'lease_lost')
    expect(ends).toMatchObject([{ kind: 'lease_lost', phase: 'terminal' }])
    expect(test.pending()).toMatchObject([{ inFlight: true }])
  })

  test('that takes longer than its lease keeps it: it is not run twice', async () => {
    const { test, outbox } = await testOutbox()
    const handler = vi.fn(() => test.advance(100_000))
    outbox.subscribe('orders', handler, { leaseMs: 30_000 })

    await outbox.publish(standIn, 'orders', 1)

    expect(handler).toHaveBeenCalledTimes(1)
    expect(test.pending()).toEqual([])
  })

  test('publishers at once each wait for the follow-ons of their own message', async () => {
    const { outbox } = await testOutbox()
    const followed: unknown[] = []
    outbox.subscribe('orders', async ({ body }, context) => void (await context.publish('emails', body)))
    outbox.subscribe('emails', async ({ body }) => {
      await new Promise((resolve) => setImmediate(resolve))
      followed.push(body)
    })

    const publishing = Array.from({ length: 30 }, async (_, order) => {
      await outbox.publish(standIn, 'orders', order)
      expect(followed).toContain(order)
    })

    await Promise.all(publishing)
    expect(followed).toHaveLength(30)
  })
})

test('the bodies of what was published are typed by the queue', async () => {
  const { test } = await typedOutbox()
  await test.outbox.publishNow('orders', { orderId: 1 })
  const [order] = test.published('orders')
  expectTypeOf(order!.body).toEqualTypeOf<{ readonly orderId: number }>()
  expectTypeOf(order!.queue).toEqualTypeOf<'orders'>()
  expect(order?.body).toEqual({ orderId: 1 })
})

async function typedOutbox() {
  const { typed } = await import('../core/queues.ts')
  const queues = { orders: { body: typed<{ readonly orderId: number }>() } }
  return { test: await createTestOutbox({ ...quiet, queues }) }
}
