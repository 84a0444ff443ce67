// Scenarios F-20 to F-30 of the conformance list: the loops of an outbox at work, on a clock of the test's.
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { signal } from '../../../../tests/support/signals.ts'
import type { OutboxEvent } from '../index.ts'
import { constant } from '../policies.ts'
import { createTestOutbox } from './create-test-outbox.ts'

const second = 1_000
const hour = 3_600_000
const standIn = { anything: true } as never

async function looping(options: object = {}) {
  const events: OutboxEvent[] = []
  const onEvent = (event: OutboxEvent) => void events.push(event)
  const test = await createTestOutbox({ logger: false, onEvent, ...options }, { mode: 'loop' })
  onTestFinished(test.dispose)
  return { test, outbox: test.outbox, kinds: () => events.map(({ kind }) => kind), events }
}

describe('the loops', () => {
  test.each(['feed', 'publish', 'publishMany'] as const)(
    'are woken by %s, though they would not look for an hour',
    async (way) => {
      const bench = await looping()
      const { test, outbox } = bench
      const handler = vi.fn()
      outbox.subscribe('orders', handler, { pollMs: { min: hour, max: hour } })

      if (way === 'feed') await test.feed('orders', 1)
      else if (way === 'publish') await outbox.publish(standIn, 'orders', 1)
      else await outbox.publishMany(standIn, 'orders', [1])
      await test.drain()

      expect(handler).toHaveBeenCalledTimes(1)
    },
  )

  test('may be started before there are subscribers: no warning', async () => {
    const { kinds } = await looping()
    expect(kinds()).not.toContain('warning')
  })

  test('do not run a handler before publish returns', async () => {
    const bench = await looping()
    const handler = vi.fn()
    bench.outbox.subscribe('orders', handler)

    await bench.test.transaction(async (tx) => {
      await bench.outbox.publish(tx, 'orders', 1)
      await bench.test.drain()
      expect(handler).not.toHaveBeenCalled()
    })

    await bench.test.drain()
    expect(handler).toHaveBeenCalledTimes(1)
  })

  test('retry a failing handler when its time has come, not before, until it succeeds', async () => {
    const bench = await looping()
    const { test, outbox } = bench
    const attempts: number[] = []
    outbox.subscribe(
      'orders',
      ({ attempt }) => {
        attempts.push(attempt)
        if (attempt < 3) throw new Error('not yet')
      },
      { retry: constant({ delayMs: 10 * second }) },
    )

    await outbox.publish(standIn, 'orders', 1)
    await test.drain()
    expect(attempts).toEqual([1])
    await test.advance(9 * second)
    expect(attempts).toEqual([1])
    await test.advance(1 * second)
    expect(attempts).toEqual([1, 2])
    await test.advance(10 * second)

    expect(attempts).toEqual([1, 2, 3])
    expect(test.pending()).toEqual([])
  })

  test('ask the policy of each failure: transient, then terminal', async () => {
    const bench = await looping()
    const { test, outbox } = bench
    class Permanent extends Error {}
    let runs = 0
    const retry = ({ error }: { readonly error: unknown }) => (error instanceof Permanent ? null : second)
    outbox.subscribe(
      'orders',
      () => {
        throw ++runs === 1 ? new Error('once more') : new Permanent('enough')
      },
      { retry },
    )

    await outbox.publish(standIn, 'orders', 1)
    await test.drain()
    await test.advance(second)

    expect(runs).toBe(2)
    expect(test.dead()).toMatchObject([{ attempts: 2 }])
  })

  test('bury what was delivered too often without an outcome, and do not run it', async () => {
    const bench = await looping()
    const { test, outbox } = bench
    const handler = vi.fn()
    outbox.subscribe('orders', handler, { maxDeliveries: 5 })

    await test.feed('orders', 1, { deliveries: 5 })
    await test.drain()

    expect(handler).not.toHaveBeenCalled()
    expect(test.dead()).toMatchObject([{ reason: 'max_deliveries', deliveries: 5 }])
  })

  test('wait with a message for later, then fire it', async () => {
    const bench = await looping()
    const { test, outbox } = bench
    const at: Date[] = []
    outbox.subscribe('orders', () => void at.push(test.now()))
    const published = test.now().getTime()

    await outbox.publish(standIn, 'orders', 1, { delayMs: 30 * 24 * hour })
    await test.drain()
    expect(at).toEqual([])
    await test.advance(60 * 24 * hour)

    expect(at.map((time) => time.getTime())).toEqual([published + 30 * 24 * hour])
  })

  test('renew the lease of a handler that takes long, and nobody else gets its message', async () => {
    const bench = await looping()
    const { test, outbox, kinds } = bench
    const gate = signal('the gate opens')
    const handler = vi.fn(() => gate.wait())
    outbox.subscribe('orders', handler, { leaseMs: 30 * second })

    await outbox.publish(standIn, 'orders', 1)
    await test.advance(5 * 60 * second)
    gate.send()
    await test.drain()

    expect(handler).toHaveBeenCalledTimes(1)
    expect(kinds()).toContain('lease_renewed')
    expect(kinds()).not.toContain('lease_lost')
  })

  test('end a handler that is out of time', async () => {
    const bench = await looping()
    const { test, outbox, kinds } = bench
    const reasons: unknown[] = []
    outbox.subscribe(
      'orders',
      (_, { signal }) =>
        new Promise(() => signal.addEventListener('abort', () => void reasons.push(signal.reason))),
      { timeoutMs: 10 * second, retry: constant({ delayMs: hour }) },
    )

    await outbox.publish(standIn, 'orders', 1)
    await test.advance(9 * second)
    expect(reasons).toEqual([])
    await test.advance(1 * second)

    expect(reasons).toMatchObject([{ code: 'OUTBOX_HANDLER_TIMEOUT' }])
    expect(kinds()).toContain('retried')
  })

  test('have no more handlers at once than they may, and deliver the others later', async () => {
    const bench = await looping()
    const { test, outbox } = bench
    const gate = signal('the gate opens')
    const started: unknown[] = []
    outbox.subscribe(
      'orders',
      ({ body }) => {
        started.push(body)
        return gate.wait()
      },
      { concurrency: 1 },
    )

    await outbox.publishMany(standIn, 'orders', [1, 2])
    await test.advance(second)
    expect(started).toEqual([1])
    gate.send()
    await test.drain()

    expect(started).toEqual([1, 2])
  })
})

describe('disposing', () => {
  test('lets a running handler finish, and keeps nothing of the loops', async () => {
    const { test, outbox, kinds } = await looping()
    const gate = signal('the gate opens')
    outbox.subscribe('orders', () => gate.wait())
    await outbox.publish(standIn, 'orders', 1)
    await test.advance(1)

    const disposed = test.dispose()
    gate.send()
    await disposed

    expect(kinds()).toContain('acked')
    expect(outbox.health()).toEqual({ ok: false, reasons: ['it is not running'] })
  })

  test('gives a handler up that never ends: its signal aborts, and the message stays', async () => {
    const { test, outbox, kinds } = await looping()
    const signals: AbortSignal[] = []
    outbox.subscribe('orders', (_, { signal }) => {
      signals.push(signal)
      return new Promise(() => {})
    })
    await outbox.publish(standIn, 'orders', 1)
    await test.advance(1)

    await test.dispose()

    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
    expect(kinds()).toContain('drain_timeout')
    expect(test.pending()).toMatchObject([{ inFlight: true }])
  })
})
