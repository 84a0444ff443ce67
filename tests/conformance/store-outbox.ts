import type { Message } from 'postbox'
import { expect, test } from 'vitest'
import { collector, eventually } from '../support/signals.ts'
import { minute, type StoreBench, token } from './store-bench.ts'
import { hour, outboxBench } from './store-outbox-bench.ts'

// Nobody polls during a test: what is found was announced.
const never = { min: hour, max: hour }

/** What an outbox does on every store: published, delivered, counted. */
export function describeOutbox(bench: StoreBench): void {
  const { open, inTransaction } = outboxBench(bench)

  test('a message reaches its handler as it was published, and is deleted', async () => {
    const { outbox, of } = open({ generation: 7, source: 'shop' })
    const got = collector<Message>('messages')
    outbox.subscribe('orders', got.add)
    const options = { key: 'k', headers: { tenant: 'ä"\\' }, correlationId: 'c' }
    const receipt = await outbox.publishNow('orders', { orderId: 1, text: 'ä\\x41\n' }, options)
    await outbox.publishNow('orders', new Uint8Array([0, 92, 120, 255]))

    await outbox.start()
    const [first, second] = await got.take(2)
    await of('acked', 2)

    expect(first).toMatchObject({
      ...{
        ...receipt,
        queue: 'orders',
        key: 'k',
        body: { orderId: 1, text: 'ä\\x41\n' },
        correlationId: 'c',
      },
      ...{ headers: { tenant: 'ä"\\', source: 'shop' }, attempt: 1, deliveries: 1, generation: 7 },
    })
    expect([...second!.raw]).toEqual([0, 92, 120, 255])
    expect(await bench.rows()).toEqual([])
  })

  test('what a transaction published is delivered when it commits, and nothing when it rolls back', async () => {
    const { outbox, of } = open()
    const got = collector<unknown>('bodies')
    outbox.subscribe('orders', ({ body }) => got.add(body))
    await outbox.start()
    const lost = await bench.store.begin()
    await outbox.publish(lost.handle as never, 'orders', 'lost')
    await lost.rollback()

    const receipts = await inTransaction(async (tx) => {
      await outbox.publish(tx, 'orders', 1)
      return outbox.publishMany(tx, 'orders', [2, 3])
    })
    await of('acked', 3)

    expect(got.all.toSorted()).toEqual([1, 2, 3])
    expect(receipts.map((receipt) => receipt?.seq)).toEqual(['3', '4'])
    expect(await bench.rows()).toEqual([])
  })

  test('a transaction sees what it published, cancels its timers, and arms them once', async () => {
    const { outbox } = open()
    await outbox.publishNow('orders', 'later', { timerId: 'daily', delayMs: hour })

    const seen = await inTransaction(async (tx) => {
      const kept = await outbox.publish(tx, 'orders', 'kept', { timerId: 'daily' })
      const replaced = await outbox.publish(tx, 'orders', 'new', { timerId: 'daily', onConflict: 'replace' })
      const many = await outbox.publishMany(tx, 'orders', ['a', 'b'], (body) => ({ timerId: String(body) }))
      const cancelled = [
        await outbox.cancelTimer(tx, 'orders', 'a'),
        await outbox.cancelTimer(tx, 'orders', 'a'),
      ]
      const pending = await outbox.pending(tx, { queue: 'orders' })
      return { kept, replaced, many, cancelled, pending }
    })

    expect(seen).toMatchObject({ kept: null, replaced: { seq: '1' }, cancelled: [true, false] })
    expect(seen.many.map((receipt) => receipt?.seq)).toEqual(['4', '5'])
    expect(seen.pending).toMatchObject([
      { seq: '1', body: 'new', timerId: 'daily', inFlight: false, dueAt: expect.any(Date) },
      { seq: '5', body: 'b', timerId: 'b', dueAt: null },
    ])
  })

  test('a transaction that has ended publishes nothing', async () => {
    const { outbox } = open()
    const tx = await bench.store.begin()
    await tx.commit()

    await expect(outbox.publish(tx.handle as never, 'orders', 1)).rejects.toMatchObject({
      code: 'OUTBOX_NOT_IN_TRANSACTION',
    })
    expect(await bench.rows()).toEqual([])
  })

  test('a delay and a time are waited for', async () => {
    const { outbox, of } = open()
    const { now } = await bench.store.snapshot()
    const got = collector<unknown>('bodies')
    outbox.subscribe('orders', ({ body }) => got.add(body))
    await outbox.publishNow('orders', 'delay', { delayMs: hour })
    await outbox.publishNow('orders', 'time', { at: new Date(now + 3 * hour) })
    await outbox.publishNow('orders', 'past', { at: new Date(now - hour) })
    await outbox.start()
    await of('acked')
    const first = [...got.all]
    await bench.store.advance(2 * hour)
    await of('acked', 2)
    const second = [...got.all]
    await bench.store.advance(2 * hour)
    await of('acked', 3)

    expect([first, second, got.all]).toEqual([['past'], ['past', 'delay'], ['past', 'delay', 'time']])
  })

  test('messages are announced: nobody needs to poll', async () => {
    const { outbox, of } = open({ defaults: { pollMs: never } })
    const got = collector<unknown>('bodies')
    outbox.subscribe('orders', ({ body }) => got.add(body))
    await outbox.start()
    await eventually(() => outbox.health().reasons.length === 0, { what: 'an outbox that listens' })

    for (let count = 1; count <= 5; count++) {
      await outbox.publishNow('orders', count)
      await of('acked', count)
    }
    expect(got.all).toEqual([1, 2, 3, 4, 5])
  })

  test('what waits is counted by its queues, and looked at', async () => {
    const { outbox } = open({ queues: { orders: {}, mails: {} } } as object)
    await bench.publish()
    await bench.claim({ leaseMs: hour })
    await bench.publish()
    await bench.publish({ schedule: { kind: 'after', delayMs: hour } })
    await bench.store.advance(minute)

    const { orders, mails } = await outbox.stats()
    const pending = await inTransaction((tx) => outbox.pending(tx))

    const exactly = (count: number) => ({ count, atLeast: false })
    expect(orders).toMatchObject({ ready: exactly(1), leased: exactly(1), scheduled: exactly(1) })
    expect(Math.round(orders!.oldestReadyMs! / minute)).toBe(1)
    expect(mails).toEqual({
      ready: exactly(0),
      leased: exactly(0),
      scheduled: exactly(0),
      parked: exactly(0),
      oldestReadyMs: null,
      paused: null,
    })
    expect(pending.map(({ inFlight, deliveries }) => [inFlight, deliveries])).toEqual([
      [true, 1],
      [false, 0],
      [false, 0],
    ])
    expect((await bench.rows())[0]).toMatchObject({ leaseToken: token })
  })

  test('it answers, and its schema is there without being made', async () => {
    const { outbox } = open()

    await outbox.migrate()
    expect(await outbox.ping()).toBe(true)
  })

  test('two outboxes share the work: each message is delivered once', async () => {
    const got = collector<unknown>('bodies')
    const both = [open(), open()]
    for (const { outbox } of both) outbox.subscribe('orders', ({ body }) => got.add(body), { concurrency: 5 })
    const bodies = Array.from({ length: 300 }, (_, n) => n)
    for (const { outbox } of both) await outbox.start()
    for (let n = 0; n < 300; n += 50)
      await inTransaction((tx) => both[0]!.outbox.publishMany(tx, 'orders', bodies.slice(n, n + 50)))
    await got.take(300)
    for (const { outbox } of both) await outbox.stop()

    expect(got.all.toSorted((a, b) => Number(a) - Number(b))).toEqual(bodies)
    expect(await bench.rows()).toEqual([])
  })
}
