// Clauses of scenarios (tests/conformance/README.md) about the test kit that its other tests do not ask for.
import { describe, expect, onTestFinished, test } from 'vitest'
import { stealLease } from '../../../../tests/support/steal-lease.ts'
import { defineSubscriber } from '../define-subscriber.ts'
import type { OutboxEvent } from '../index.ts'
import { createOutbox } from '../outbox.ts'
import { constant, noRetry } from '../policies.ts'
import { createTestOutbox } from './create-test-outbox.ts'

const hour = 3_600_000
const tx = { anything: true } as never

async function kit(options: Parameters<typeof createOutbox>[0] = {}) {
  const events: OutboxEvent[] = []
  const onEvent = (event: OutboxEvent) => void events.push(event)
  const test = await createTestOutbox({ logger: false, onEvent, ...options })
  onTestFinished(test.dispose)
  return { test, outbox: test.outbox, events, kinds: () => events.map(({ kind }) => kind) }
}

const fail = (): never => {
  throw new Error('no')
}

describe('publishing', () => {
  // F-06
  test('meets a timer that waits, in its own queue only', async () => {
    const { test, outbox } = await kit()
    const receipts = []
    for (const queue of ['orders', 'orders', 'emails'])
      receipts.push(await outbox.publish(tx, queue, 1, { timerId: 't', delayMs: hour }))

    expect(receipts.map((receipt) => receipt !== null)).toEqual([true, false, true])
    expect(test.pending().map(({ queue }) => queue)).toEqual(['orders', 'emails'])
  })

  // F-06
  test.each([{ delayMs: 1, at: new Date() }, { at: new Date(Number.NaN) }, { at: '2026-01-01' }])(
    'refuses a time that makes no sense, alone and in a batch (case %#)',
    async (wrong) => {
      const { test, outbox } = await kit()
      const code = 'OUTBOX_INVALID_TIME'

      await expect(outbox.publish(tx, 'orders', 1, wrong as never)).rejects.toMatchObject({ code })
      await expect(outbox.publishMany(tx, 'orders', [1], wrong as never)).rejects.toMatchObject({ code })
      expect(test.pending()).toEqual([])
    },
  )

  // F-06
  test('of an empty batch does nothing', async () => {
    const { test, outbox, kinds } = await kit()

    expect(await outbox.publishMany(tx, 'orders', [])).toEqual([])
    expect([test.published(), kinds()]).toEqual([[], []])
  })

  // F-13
  test('by a bound publisher keeps its own headers before those of a middleware, its timers and its times', async () => {
    const publish = (_: unknown, next: (headers: object) => Promise<never>) =>
      next({ tenant: 'm', trace: 'm' })
    const { test, outbox } = await kit({ middleware: [{ publish } as never] })
    const publisher = outbox.in(tx)
    await publisher.publish('orders', 1, { headers: { tenant: 'own' }, delayMs: hour, timerId: 't' })
    const again = await publisher.publish('orders', 2, { delayMs: hour, timerId: 't' })
    await publisher.publishMany('orders', [3, 4])

    const [first, ...others] = test.published('orders')
    expect(again).toBeNull()
    expect(first).toMatchObject({ headers: { tenant: 'own', trace: 'm' }, timerId: 't' })
    expect(first?.dueAt?.getTime()).toBe(test.now().getTime() + hour)
    expect(others).toMatchObject([
      { body: 3, headers: { tenant: 'm' } },
      { body: 4, headers: { tenant: 'm' } },
    ])
  })
})

// F-07
test('what waits is read by queue and up to a limit, which is checked, and goes when it is cancelled', async () => {
  const { test, outbox } = await kit()
  for (const [queue, body] of [
    ['orders', 1],
    ['emails', 2],
    ['orders', 3],
  ] as const)
    await outbox.publish(tx, queue, body, { timerId: `t${body}` })
  const bodies = async (options?: object) => (await outbox.pending(tx, options)).map(({ body }) => body)

  expect([await bodies(), await bodies({ queue: 'orders' }), await bodies({ limit: 2 })]).toEqual([
    [1, 2, 3],
    [1, 3],
    [1, 2],
  ])
  await expect(outbox.pending(tx, { limit: 0 })).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
  const cancelled = ['t1', 't1', 't2'].map((timerId) => outbox.cancelTimer(tx, 'orders', timerId))
  expect(await Promise.all(cancelled)).toEqual([true, false, false])
  expect(test.pending().map(({ body }) => body)).toEqual([2, 3])
})

// F-08
test('a subscriber that was defined in a module receives, by its own options', async () => {
  const { test, outbox } = await kit()
  const rejecting = { ack: 'reject-on-error', retry: noRetry() } as const
  outbox.subscribe(defineSubscriber({ orders: {} }, 'orders', fail, rejecting) as never)

  await outbox.publish(tx, 'orders', 1)

  expect(test.dead()).toMatchObject([{ reason: 'rejected', attempts: 1 }])
})

describe('a handler', () => {
  // F-04
  test('that fails under the default policy keeps its message, with one attempt, for later', async () => {
    const { test, outbox } = await kit()
    outbox.subscribe('orders', fail)

    await outbox.publish(tx, 'orders', 1)

    const [waiting] = test.pending()
    expect(waiting).toMatchObject({ attempts: 1, deliveries: 1, inFlight: false })
    expect(waiting!.dueAt!.getTime()).toBeGreaterThanOrEqual(test.now().getTime())
  })

  // F-09
  test('that fails after its lease was lost does not put its message back, and publish does not throw', async () => {
    const { test, outbox, events } = await kit()
    outbox.subscribe('orders', ({ seq }) => {
      stealLease(outbox, seq)
      fail()
    })

    await outbox.publish(tx, 'orders', 1)

    const ends = events.filter(({ kind }) => ['acked', 'retried', 'lease_lost'].includes(kind))
    expect(ends).toMatchObject([{ kind: 'lease_lost', phase: 'retry' }])
    expect(test.pending()).toMatchObject([{ attempts: 0, inFlight: true }])
  })

  // N-08
  test('of one message has its end written before the next one of a batch starts', async () => {
    const { outbox, kinds } = await kit()
    outbox.subscribe('orders', () => {})

    await outbox.publishMany(tx, 'orders', [1, 2, 3])

    const steps = kinds().filter((kind) => kind === 'dispatched' || kind === 'acked')
    expect(steps).toEqual(['dispatched', 'acked', 'dispatched', 'acked', 'dispatched', 'acked'])
  })
})

describe('a follow-on', () => {
  // F-14
  test('may be for later or a timer, of which one waits; what a handler returns is none', async () => {
    const { test, outbox } = await kit()
    outbox.subscribe('orders', async (_, context) => {
      await context.publish('reminders', 1, { timerId: 't', delayMs: hour })
      return { not: 'published' }
    })

    await outbox.publishMany(tx, 'orders', [1, 2])

    const waiting = test.pending()
    expect(waiting).toMatchObject([{ queue: 'reminders', timerId: 't' }])
    expect(waiting[0]!.dueAt!.getTime()).toBe(test.now().getTime() + hour)
    expect(test.published().map(({ queue }) => queue)).toEqual(['orders', 'orders', 'reminders'])
  })

  // F-15
  test('with a content type and a correlation id of its own changes nothing of the message it comes from', async () => {
    const { test, outbox } = await kit()
    const seen: unknown[] = []
    outbox.subscribe(
      'orders',
      async ({ headers, correlationId, attempt }, context) => {
        seen.push([headers, correlationId])
        await context.publish('emails', 'text', { correlationId: 'own', contentType: 'text/html' })
        if (attempt === 1) fail()
      },
      { propagateHeaders: true, retry: constant({ delayMs: 1_000 }) },
    )

    await outbox.publish(tx, 'orders', new Uint8Array([1]), {
      ...{ contentType: 'image/png', correlationId: 'first', headers: { tenant: 'a' } },
    })
    await test.advance(1_000)

    const headers = { tenant: 'a', 'content-type': 'image/png', 'correlation-id': 'first' }
    expect(seen).toEqual([
      [headers, 'first'],
      [headers, 'first'],
    ])
    expect(test.published('emails')).toMatchObject([
      { headers: { tenant: 'a', 'content-type': 'text/html', 'correlation-id': 'own' } },
    ])
  })
})

// F-17
describe('dead letters', () => {
  test('have what describeError says, or nothing', async () => {
    for (const said of ['redacted', null]) {
      const { test, outbox } = await kit({ describeError: () => said })
      outbox.subscribe('orders', fail, { retry: noRetry() })
      await outbox.publish(tx, 'orders', 1)
      expect(test.dead()).toMatchObject([{ reason: 'retry_terminal', error: said }])
    }
  })

  test('have no error where none was given', async () => {
    const { test, outbox } = await kit()
    outbox.subscribe('orders', (_, { retry }) => retry(), { retry: noRetry() })
    await outbox.publish(tx, 'orders', 1)
    expect(test.dead()).toMatchObject([{ reason: 'retry_terminal', error: null }])
  })

  test('are told of once they are written, and not of a success', async () => {
    const { outbox, kinds } = await kit()
    outbox.subscribe('orders', ({ body }) => (body === 'bad' ? fail() : null), { retry: noRetry() })
    await outbox.publish(tx, 'orders', 'good')
    const before = kinds().filter((kind) => kind === 'dlq_written').length
    await outbox.publish(tx, 'orders', 'bad')
    expect([before, kinds().filter((kind) => kind === 'dlq_written').length]).toEqual([0, 1])
  })

  test('are the same where they stay in place, and what waits is only what lives', async () => {
    const { test, outbox } = await kit({ deadLetters: 'in-place' })
    outbox.subscribe('orders', fail, { retry: noRetry() })
    await outbox.publish(tx, 'orders', 1)
    const [letter] = test.dead()
    expect(letter).toMatchObject({ body: 1, reason: 'retry_terminal', isQuarantined: false })
    expect([test.dead('orders').length, test.pending()]).toEqual([1, []])
    expect(await outbox.deadLetters.get(letter!.id)).toMatchObject({ isQuarantined: false })
  })

  test('are none with discard: what is dead is gone', async () => {
    const { test, outbox, kinds } = await kit({ deadLetters: 'discard' })
    outbox.subscribe('orders', fail, { retry: noRetry() })
    await outbox.publish(tx, 'orders', 1)
    expect([test.dead(), test.pending()]).toEqual([[], []])
    expect(kinds()).toContain('dead')
    expect(kinds()).not.toContain('dlq_written')
  })
})

// F-18
test('the test outbox of an outbox has that very outbox', async () => {
  const app = createOutbox({ logger: false })
  const test = await createTestOutbox(app)
  onTestFinished(test.dispose)

  expect(test.outbox).toBe(app)
})

// U-CLI-06
test('ping answers, and a schema that is not there is not called valid', async () => {
  const { outbox } = await kit()

  expect(await outbox.ping()).toBe(true)
  await expect(outbox.validateSchema()).rejects.toMatchObject({ code: 'OUTBOX_NO_SQL' })
})

// F-30
test('disposing ends what can end, and keeps the message of a handler that never does', async () => {
  const events: string[] = []
  const onEvent = ({ kind }: OutboxEvent) => void events.push(kind)
  const test = await createTestOutbox({ logger: false, onEvent }, { mode: 'loop' })
  const started: unknown[] = []
  let go = (): void => {}
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  const never = new Promise(() => {})
  test.outbox.subscribe('orders', ({ body }) => {
    started.push(body)
    return body === 'never' ? never : gate
  })
  await test.outbox.publishMany(tx, 'orders', ['a', 'never', 'b'])
  await test.advance(1)

  const disposed = test.dispose()
  go()
  await disposed

  expect(started).toEqual(['a', 'never', 'b'])
  expect(test.pending()).toMatchObject([{ body: 'never', inFlight: true }])
  expect(events.filter((kind) => kind === 'acked' || kind === 'drain_timeout')).toEqual([
    'acked',
    'acked',
    'drain_timeout',
  ])
})
