// A deployment changes options process by process: for a while, outboxes that differ work on one table.
import { constant, type Message, noRetry } from 'postbox'
import { describe, expect, test } from 'vitest'
import { holding } from '../rolling/holding.ts'
import { noPolling, watchSleep } from '../rolling/sleep-watch.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

/** The options before the deployment, and after it. */
const before = { concurrency: 1, prefetch: 0, leaseMs: 5_000, pollMs: { min: 20, max: 40 } }
const after = { concurrency: 8, prefetch: 4, leaseMs: 600_000, pollMs: { min: 20, max: 40 } }

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)
const fail = (): never => {
  throw new Error('not now')
}
const makeDue = (): Promise<unknown> => database.query('update outbox set due_at = now()')

interface Delivery {
  readonly by: string
  readonly message: Message
}

describe('two outboxes with other leases, slots and generations', () => {
  test('deliver each message once between them, with the generation of whoever published it, each with its own slots', async () => {
    const delivered = collector<Delivery>('deliveries')
    const running = { before: 0, after: 0 }
    const most = { before: 0, after: 0 }
    const bothAtWork = signal('both to have messages in hand')
    const handlerOf = (by: keyof typeof running) => async (message: Message) => {
      most[by] = Math.max(most[by], ++running[by])
      if (running.before > 0 && running.after > 0) bothAtWork.send()
      await bothAtWork.wait()
      running[by]--
      delivered.add({ by, message })
    }
    const old = outboxOf({ generation: 1 })
    const young = outboxOf({ generation: 2 })
    const unstamped = outboxOf()
    old.subscribe('orders', handlerOf('before'), before)
    young.subscribe('orders', handlerOf('after'), after)
    const generations = new Map<string, number | null>()
    const publishers = [
      [old, 1],
      [young, 2],
      [unstamped, null],
    ] as const
    for (const [outbox, generation] of publishers) {
      await inTransaction(bench.pool(), async (tx) => {
        for (const { id } of await outbox.publishMany(tx, 'orders', upTo(60))) generations.set(id, generation)
      })
    }
    await using _old = await old.start()
    await using _young = await young.start()

    const all = await delivered.take(180)

    expect(new Map(all.map(({ message: { id, generation } }) => [id, generation]))).toEqual(generations)
    expect(new Set(all.map(({ by }) => by))).toEqual(new Set(['before', 'after']))
    expect(most.before).toBe(1)
    expect(most.after).toBeGreaterThan(1)
    expect(most.after).toBeLessThanOrEqual(8)
    await eventually(async () => (await messages()).length === 0, { what: 'all of them to be settled' })
    expect(delivered.all).toHaveLength(180)
  })

  test('leave each other’s live leases alone, however short their own are', async () => {
    const [long, short] = [outboxOf(), outboxOf()]
    const hand = holding(long, after)
    short.subscribe('orders', () => expect.unreachable(), before)
    await long.publishNow('orders', 1)
    await using _long = await long.start()
    await hand.held.wait()

    await using _short = await short.start()
    const looks = await short.told.take('claimed', 10)

    expect(looks.map(({ count }) => count)).toEqual(looks.map(() => 0))
    hand.finish.send()
    await long.told.first('acked')
    expect(await messages()).toEqual([])
  })

  test('renew by their own length: a short lease that is renewed is not taken by who leases for longer', async () => {
    const [short, long] = [outboxOf(), outboxOf()]
    const hand = holding(short, before)
    long.subscribe('orders', () => expect.unreachable(), after)
    await short.publishNow('orders', 1)
    await using _short = await short.start()
    await hand.held.wait()

    // By the second renewal, each of which comes after half a lease, the first lease has ended.
    await short.told.take('lease_renewed', 2)
    // Its first look is at everything.
    await using _long = await long.start()
    await long.told.first('claimed')
    const [row] = await database.query<{ leftMs: number }>(
      `select (extract(epoch from leased_until - now()) * 1000)::float8 as "leftMs" from outbox`,
    )

    expect(row?.leftMs).toBeLessThanOrEqual(before.leaseMs)
    expect(long.told.of('dispatched')).toEqual([])
    hand.finish.send()
    await short.told.first('acked')
  })

  test('count attempts together, and each asks its own policy what they mean', async () => {
    const patient = outboxOf({ generation: 1 })
    const strict = outboxOf({ generation: 2 })
    const attempts: number[] = []
    const failing = ({ attempt }: Message): never => {
      attempts.push(attempt)
      return fail()
    }
    const hour = 3_600_000
    patient.subscribe('orders', failing, { retry: constant({ delayMs: hour, maxAttempts: 10 }) })
    strict.subscribe('orders', failing, { retry: constant({ delayMs: hour, maxAttempts: 3 }) })
    await patient.publishNow('orders', 1)

    expect(await patient.drain()).toMatchObject({ retried: 1 })
    await makeDue()
    expect(await strict.drain()).toMatchObject({ retried: 1 })
    await makeDue()
    expect(await strict.drain()).toMatchObject({ retried: 0, dead: 1 })

    expect(attempts).toEqual([1, 2, 3])
    expect(await dead()).toMatchObject([
      { attempts: 3, deliveries: 3, generation: '1', failure_reason: 'retry_terminal' },
    ])
  })
})

describe('a dead letter', () => {
  test('that one has buried is listed and replayed by the other, and keeps its generation', async () => {
    const old = outboxOf({ generation: 1 })
    const young = outboxOf({ generation: 2 })
    const got = signal<Message>('the message')
    old.subscribe('orders', fail, { retry: noRetry() })
    young.subscribe('orders', got.send)
    const { id } = await old.publishNow('orders', { orderId: 1 })
    await old.drain()

    const { items } = await young.deadLetters.list()
    expect(items).toMatchObject([{ id, body: { orderId: 1 }, generation: 1, error: 'Error: not now' }])
    expect(await young.deadLetters.replay(id, { by: 'ann' })).toEqual({ replayed: true, lands: 'anywhere' })
    expect(await young.drain()).toMatchObject({ acked: 1 })

    expect(await got.wait()).toMatchObject({ id, attempt: 1, generation: 1 })
    expect(await old.deadLetters.count()).toMatchObject({ count: 0 })
  })

  test('is kept by who keeps them and gone with who discards them, who can still list and replay the kept', async () => {
    const keeping = outboxOf()
    const discarding = outboxOf({ deadLetters: 'discard' })
    const options = { retry: noRetry() }
    keeping.subscribe('orders', fail, options)
    discarding.subscribe('orders', fail, options)

    await keeping.publishNow('orders', 'discarded')
    expect(await discarding.drain()).toMatchObject({ dead: 1 })
    expect(await dead()).toEqual([])
    const { id } = await keeping.publishNow('orders', 'kept')
    expect(await keeping.drain()).toMatchObject({ dead: 1 })

    expect((await discarding.deadLetters.list()).items).toMatchObject([{ id, body: 'kept' }])
    expect(await discarding.deadLetters.replay(id, { by: 'ann' })).toEqual({
      replayed: true,
      lands: 'anywhere',
    })
    expect(await messages()).toMatchObject([{ id }])
  })
})

describe('a timer that one has armed', () => {
  const hour = { timerId: 't', delayMs: 3_600_000 }

  test('is cancelled by the other', async () => {
    const [old, young] = [outboxOf(), outboxOf({ generation: 2 })]
    await old.publishNow('orders', 'first', hour)

    await inTransaction(bench.pool(), async (tx) =>
      expect(await young.cancelTimer(tx, 'orders', 't')).toBe(true),
    )
    expect(await messages()).toEqual([])
  })

  test('is kept or replaced by the other, whose generation comes with its body', async () => {
    const [old, young] = [outboxOf({ generation: 1 }), outboxOf({ generation: 2 })]
    await old.publishNow('orders', 'first', hour)

    expect(await young.publishNow('orders', 'kept out', hour)).toBeNull()
    expect(await messages()).toMatchObject([{ generation: '1' }])
    const replaced = await young.publishNow('orders', 'second', { ...hour, onConflict: 'replace' })

    expect(await messages()).toMatchObject([{ id: replaced?.id, generation: '2' }])
    await makeDue()
    const got = signal<Message>('the message')
    old.subscribe('orders', () => expect.unreachable())
    young.subscribe('orders', got.send)
    expect(await old.drain()).toMatchObject({ acked: 0, isEmpty: true })
    expect(await young.drain()).toMatchObject({ acked: 1 })
    expect(await got.wait()).toMatchObject({ body: 'second', generation: 2 })
  })
})

describe('publishers and subscribers that wake differently', () => {
  // Where a word is sent and heard, nobody need look at the clock. The other pairs find a message by polling: after five seconds, by default.
  const often = { min: 20, max: 100 }

  test.each([
    ['quiet', 'quiet', noPolling],
    ['quiet', 'always', often],
    ['quiet', 'poll', often],
    ['always', 'quiet', noPolling],
    ['always', 'always', noPolling],
    ['always', 'poll', often],
    ['poll', 'quiet', often],
    ['poll', 'always', often],
    ['poll', 'poll', often],
  ] as const)('lose nothing: published by %s, delivered by %s', async (publishing, delivering, pollMs) => {
    const publisher = outboxOf({ wake: publishing })
    const watch = watchSleep()
    const subscriber = outboxOf({ wake: delivering, ...watch.options })
    const got = signal<unknown>('the message')
    subscriber.subscribe('orders', ({ body }) => got.send(body), { pollMs })
    await using _running = await subscriber.start()
    await (pollMs === noPolling ? watch.asleep.wait() : subscriber.told.first('claimed'))

    await publisher.publishNow('orders', 'hello')

    expect(await got.wait()).toBe('hello')
    await subscriber.told.first('acked')
  })
})
