// Ordered queues: messages that fail for good, and messages for later.
import { type Message, noRetry, type SubscribeOptions } from 'postbox'
import { describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench
const queues = { orders: { order: 'key' } } as const
const often = { pollMs: { min: 10, max: 30 } }
const empty = () => eventually(async () => (await messages()).length === 0, { what: 'all to be settled' })

/** Fails for good at the body 1 of key a, and collects all runs. */
function failing(options: SubscribeOptions, fail: (message: Message) => unknown) {
  const outbox = outboxOf({ queues })
  const got = collector<Message>('runs')
  outbox.subscribe(
    'orders',
    (message) => {
      got.add(message)
      if (message.key === 'a' && message.body === 1) return fail(message) as never
    },
    { ...often, ...options },
  )
  return { outbox, got }
}

async function publishAll(outbox: ReturnType<typeof outboxOf>): Promise<void> {
  for (const [key, n] of [
    ['a', 1],
    ['a', 2],
    ['a', 3],
    ['b', 1],
  ] as const)
    await outbox.publishNow('orders', n, { key })
}

const unwilling = (): never => {
  throw new Error('not ever')
}

describe('a first message that fails for good', () => {
  test('blocks its key: it is tried again, after a second, whatever its policy says', async () => {
    const { outbox, got } = failing({ retry: noRetry() }, unwilling)
    await publishAll(outbox)
    await using _ = await outbox.start()
    const [retried] = await outbox.told.take('retried', 1)
    await got.find(({ key }) => key === 'b')
    await outbox.told.take('retried', 2)

    expect(retried).toMatchObject({ delayMs: 1_000 })
    expect(got.all.filter(({ key }) => key === 'a').map(({ body }) => body)).toEqual([1, 1])
    expect(await dead()).toEqual([])
  })

  test.each([
    ['parks when its policy gives it up', { failingHead: 'park', retry: noRetry() }, unwilling],
    [
      'parks when it is rejected, though others are tried again',
      { failingHead: 'block' },
      (_: Message) => undefined,
    ],
  ] as const)('%s: dead where it lies, and its key waits', async (title, options, fail) => {
    const isRejecting = title.includes('rejected')
    const outbox = outboxOf({ queues })
    const got = collector<Message>('runs')
    outbox.subscribe(
      'orders',
      (message, context) => {
        got.add(message)
        if (message.key !== 'a' || message.body !== 1) return
        if (isRejecting) context.reject('no good')
        else fail(message)
      },
      { ...often, ...options },
    )
    await publishAll(outbox)
    await using _ = await outbox.start()
    await outbox.told.first('dead')
    await got.find(({ key }) => key === 'b')
    await outbox.publishNow('orders', 2, { key: 'b' })
    await got.find(({ key, body }) => key === 'b' && body === 2)

    expect(got.all.filter(({ key }) => key === 'a').map(({ body }) => body)).toEqual([1])
    await eventually(async () => (await messages()).every((row) => row['lease_token'] === null), {
      what: 'all to be given back',
    })
    const [first, ...behind] = (await messages()).filter((row) => row['key'] === 'a')
    expect([first?.['failed_at'], first?.['parked_at']]).toEqual([expect.any(Date), expect.any(Date)])
    expect(behind).toHaveLength(2)
    expect(await dead()).toEqual([])
    expect(await outbox.deadLetters.count()).toMatchObject({ count: 1 })
  })

  test('is skipped: its key goes on, and the next message says after whom', async () => {
    const { outbox, got } = failing({ failingHead: 'skip', retry: noRetry() }, unwilling)
    await publishAll(outbox)
    await using _ = await outbox.start()
    await outbox.told.take('acked', 3)

    const runs = got.all.filter(({ key }) => key === 'a')
    expect(runs.map(({ body, afterDead }) => [body, afterDead])).toEqual([
      [1, null],
      [2, runs[0]!.id],
      [3, null],
    ])
    expect(await dead()).toMatchObject([{ id: runs[0]!.id, key: 'a' }])
    await empty()
  })
})

describe('a message for later', () => {
  test('does not keep its key waiting, and comes behind what was published meanwhile', async () => {
    const outbox = outboxOf({ queues })
    const got = collector<unknown>('runs')
    outbox.subscribe('orders', ({ body }) => got.add(body), often)
    await outbox.publishNow('orders', 'later', { key: 'a', delayMs: 300 })
    await outbox.publishNow('orders', 'now', { key: 'a' })
    await using _ = await outbox.start()

    expect(await got.take(2)).toEqual(['now', 'later'])
    await empty()
  })

  test('comes in the order in which they were due', async () => {
    const outbox = outboxOf({ queues })
    const got = collector<unknown>('runs')
    outbox.subscribe('orders', ({ body }) => got.add(body), often)
    await outbox.publishNow('orders', 'second', { key: 'a', delayMs: 2_000 })
    await outbox.publishNow('orders', 'first', { key: 'a', delayMs: 1_000 })
    await database.query(`update outbox set due_at = due_at - interval '3 seconds'`)
    await using _ = await outbox.start()

    expect(await got.take(2)).toEqual(['first', 'second'])
    await empty()
  })

  test('waits for who is publishing to its key, and comes behind him', async () => {
    const outbox = outboxOf({ queues })
    const got = collector<unknown>('runs')
    outbox.subscribe('orders', ({ body }) => got.add(body), often)
    await outbox.publishNow('orders', 'later', { key: 'a', delayMs: 3_600_000 })
    await using _ = await outbox.start()
    await inTransaction(bench.pool(), async (tx) => {
      await outbox.publish(tx, 'orders', 'open', { key: 'a' })
      await database.query('update outbox set due_at = now() where due_at is not null')
      await outbox.publishNow('orders', 'other', { key: 'b' })
      await got.take(1)
    })

    expect(await got.take(3)).toEqual(['other', 'open', 'later'])
    await empty()
  })

  test('is moved by one that replaces it, and not sent when it is cancelled', async () => {
    const outbox = outboxOf({ queues })
    const got = collector<unknown>('runs')
    outbox.subscribe('orders', ({ body }) => got.add(body), often)
    const hour = { key: 'a', delayMs: 3_600_000 }
    await outbox.publishNow('orders', 'old', { ...hour, timerId: 't' })
    await outbox.publishNow('orders', 'gone', { ...hour, timerId: 'u' })
    await outbox.publishNow('orders', 'first', { key: 'a' })
    await outbox.publishNow('orders', 'new', { key: 'a', timerId: 't', onConflict: 'replace' })
    await inTransaction(bench.pool(), (tx) => outbox.cancelTimer(tx, 'orders', 'u'))
    await using _ = await outbox.start()

    expect(await got.take(2)).toEqual(['first', 'new'])
    await empty()
  })

  test.each(['cancelled', 'replaced by one for later'] as const)(
    'that has failed and is to be tried again holds its key, until it is %s: then it goes on with the next look',
    async (how) => {
      const outbox = outboxOf({ queues })
      const got = collector<unknown>('runs')
      const handler = ({ body }: Message): void => {
        got.add(body)
        if (body === 'timer') throw new Error('not now')
      }
      outbox.subscribe('orders', handler, { ...often, retry: () => 3_600_000 })
      await outbox.publishNow('orders', 'timer', { key: 'a', timerId: 't' })
      await using _ = await outbox.start()
      await outbox.told.first('retried')
      await outbox.publishNow('orders', 'behind', { key: 'a' })
      await outbox.publishNow('orders', 'other', { key: 'b' })
      await got.find((body) => body === 'other')
      const before = [...got.all]
      const later = { key: 'a', timerId: 't', delayMs: 3_600_000, onConflict: 'replace' } as const
      if (how === 'cancelled')
        await inTransaction(bench.pool(), (tx) => outbox.cancelTimer(tx, 'orders', 't'))
      else await outbox.publishNow('orders', 'timer', later)

      expect(await got.take(3)).toEqual(['timer', 'other', 'behind'])
      expect(before).toEqual(['timer', 'other'])
      await database.query('delete from outbox where later_key is not null')
      await empty()
    },
  )

  test('that is replaced by one without a key has none', async () => {
    const outbox = outboxOf({ queues })
    const timer = { timerId: 't', delayMs: 3_600_000 }
    await outbox.publishNow('orders', 'old', { ...timer, key: 'a' })
    await outbox.publishNow('orders', 'new', { ...timer, onConflict: 'replace' })

    expect(await messages()).toMatchObject([{ key: null, later_key: null }])
  })
})
