import { createOutbox, type Message, noRetry, TerminalError, typed } from 'postbox'
import { describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

const publish = (outbox: ReturnType<typeof outboxOf>, bodies: readonly unknown[]) =>
  inTransaction(bench.pool(), (tx) => outbox.publishMany(tx, 'orders', bodies))

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)
const bodiesOf = (messages: readonly Message[]): unknown[] => messages.map(({ body }) => body)

describe('a handler of batches', () => {
  test('gets as many messages as fit, in their order, and acknowledges them with one statement', async () => {
    const pool = database.pool({ max: 5 })
    const statements = watchStatements(pool, database.schema)
    const outbox = outboxOf({ database: pool })
    const batches = collector<unknown[]>('batches')
    outbox.subscribeBatch('orders', (got) => batches.add(bodiesOf(got)), {
      size: 4,
      concurrency: 1,
      maxWaitMs: 0,
    })
    await publish(outbox, upTo(10))
    const drained = await outbox.drain()
    await pool.end()

    expect(batches.all).toEqual([
      [1, 2, 3, 4],
      [5, 6, 7, 8],
      [9, 10],
    ])
    expect(drained).toMatchObject({ acked: 10 })
    expect(statements.named('delete_acked').length).toBeLessThanOrEqual(3)
  })

  test('waits for a batch to fill, and no longer than it may', async () => {
    const outbox = outboxOf()
    const batches = collector<unknown[]>('batches')
    outbox.subscribeBatch('orders', (got) => batches.add(bodiesOf(got)), { size: 3, maxWaitMs: 3_000 })
    await using _running = await outbox.start()
    await publish(outbox, [1])
    await outbox.told.events.find((event) => event.kind === 'claimed' && event.count === 1)
    await publish(outbox, [2, 3, 4])

    const [first, second] = await batches.take(2)
    expect(first).toEqual([1, 2, 3])
    expect(second).toEqual([4])
    await outbox.told.take('acked', 4)
  })

  test('decides each message by itself; those that it does not decide are acknowledged', async () => {
    const outbox = outboxOf()
    outbox.subscribeBatch(
      'orders',
      ([one, two, three, four], context) => {
        context.reject(one!, 'no')
        context.snooze(two!, 3_600_000)
        context.retry(three!, { afterMs: 3_600_000 })
        void context.publish(four!, { queue: 'emails', body: 'from four' })
        // Dropped: its message is not acknowledged.
        void context.publish(one!, { queue: 'emails', body: 'from one' })
      },
      { size: 10 },
    )
    await publish(outbox, upTo(5))
    const drained = await outbox.drain()

    expect(drained).toMatchObject({ acked: 2, snoozed: 1, retried: 1, dead: 1 })
    expect(await dead()).toMatchObject([{ failure_reason: 'rejected', last_error: 'no' }])
    expect((await messages()).map((row) => [row['queue'], row['attempts']])).toEqual([
      ['orders', 0],
      ['orders', 1],
      ['emails', 0],
    ])
  })

  test('that throws has its messages run one by one, so that the one to blame is found and the others are not lost', async () => {
    const runs: unknown[][] = []
    const outbox = outboxOf()
    outbox.subscribeBatch(
      'orders',
      (got) => {
        runs.push(bodiesOf(got))
        if (got.some(({ body }) => body === 3)) throw new TerminalError('three')
      },
      // Not even one failure is allowed: those that failed with it must not pay for it.
      { size: 5, retry: noRetry() },
    )
    await publish(outbox, upTo(5))
    await using _running = await outbox.start()
    await outbox.told.take('acked', 4)
    await outbox.told.first('dead')

    expect(runs[0]).toEqual([1, 2, 3, 4, 5])
    expect(runs.slice(1).flat().sort()).toEqual([1, 2, 3, 4, 5])
    expect(runs.slice(1).every((run) => run.length === 1)).toBe(true)
    expect(await dead()).toMatchObject([{ failure_reason: 'terminal_error', attempts: 2 }])
  })

  test('does not see what cannot be read, which is dead, and runs for the others', async () => {
    const outbox = outboxOf()
    const batches = collector<unknown[]>('batches')
    outbox.subscribeBatch('orders', (got) => batches.add(bodiesOf(got)), { size: 10 })
    await publish(outbox, [1])
    await database.query(
      `insert into outbox (id, queue, body) values (gen_random_uuid(), 'orders', '{broken')`,
    )
    await publish(outbox, [2])
    const drained = await outbox.drain()

    expect(batches.all).toEqual([[1, 2]])
    expect(drained).toMatchObject({ acked: 2, dead: 1 })
    expect(await dead()).toMatchObject([{ failure_reason: 'invalid_body' }])
  })

  test('that is stopped gives back at once what waits for a batch to fill', async () => {
    const outbox = outboxOf()
    outbox.subscribeBatch('orders', () => expect.unreachable(), { size: 10, maxWaitMs: 60_000 })
    await publish(outbox, upTo(3))
    const running = await outbox.start()
    await outbox.told.events.find((event) => event.kind === 'claimed' && event.count === 3)
    await running.stop()

    expect(await messages()).toMatchObject(
      upTo(3).map(() => ({ lease_token: null, deliveries: 0, attempts: 0 })),
    )
    expect(outbox.told.of('released')).toHaveLength(3)
  })
})

describe('a handler of several queues', () => {
  test('gets the messages of all, and its concurrency counts for all together', async () => {
    const told = collector<string>('runs')
    let running = 0
    let most = 0
    const outbox = createOutbox({
      database: bench.pool(),
      schema: database.schema,
      logger: false,
      queues: { orders: { body: typed<{ id: number }>() }, emails: { body: typed<string>() } },
    })
    outbox.subscribe(
      ['orders', 'emails'],
      async (message) => {
        most = Math.max(most, ++running)
        told.add(message.queue === 'orders' ? `order ${message.body.id}` : `email ${message.body}`)
        await new Promise(setImmediate)
        running--
      },
      { concurrency: 3 },
    )
    await inTransaction(bench.pool(), async (tx) => {
      await outbox.publishMany(
        tx,
        'orders',
        upTo(20).map((id) => ({ id })),
      )
      await outbox.publishMany(tx, 'emails', upTo(20).map(String))
    })
    const drained = await outbox.drain()

    expect(drained).toMatchObject({ acked: 40 })
    expect(new Set(told.all).size).toBe(40)
    expect(most).toBe(3)
  })
})
