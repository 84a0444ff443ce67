// Ordered queues and several processes: whoever has the first of a key has the key, and it goes on in order whoever dies or stops.
import type { Context, Message, OutboxOptions } from 'postbox'
import { afterEach, describe, expect, test } from 'vitest'
import { mostKeyLooks, mostRowLooks } from '../../packages/postbox/src/sql/first-rows.ts'
import { noPolling } from '../rolling/sleep-watch.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { longTestLimitMs } from '../support/patience.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench
const queues = { orders: { order: 'key' } } as const
const often = { pollMs: { min: 10, max: 30 } }
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)
const empty = () => eventually(async () => (await messages()).length === 0, { what: 'all to be settled' })
const publish = (key: string, ...numbers: number[]) =>
  inTransaction(bench.pool(), (tx) => outboxOf({ queues }).publishMany(tx, 'orders', numbers, { key }))

/** One that has an xid, and holds the horizon until it ends. */
async function openTransaction() {
  const client = await bench.pool().connect()
  await client.query('begin')
  await client.query('select pg_current_xact_id()')
  const end = async (): Promise<void> => {
    await client.query('rollback')
    client.release()
  }
  return { [Symbol.asyncDispose]: end }
}

describe('several processes', () => {
  test('share the keys of a table: of each key one message at a time, in order, each of them once', async () => {
    const keys = ['a', 'b', 'c', 'd', 'e']
    const runs = new Map<string, unknown[]>(keys.map((key) => [key, []]))
    const running = new Set<string>()
    const overlaps: string[] = []
    const ended = collector<Message>('runs')
    const handler = async (message: Message): Promise<void> => {
      const key = message.key ?? ''
      if (running.has(key)) overlaps.push(`${key}${message.body}`)
      running.add(key)
      runs.get(key)?.push(message.body)
      await bench.pool().query('select 1')
      running.delete(key)
      ended.add(message)
    }
    const outboxes = upTo(3).map(() => outboxOf({ queues }))
    for (const outbox of outboxes) outbox.subscribe('orders', handler, { ...often, concurrency: 4 })
    for (const n of upTo(10)) for (const key of keys) await publish(key, n)
    const started = await Promise.all(outboxes.map((outbox) => outbox.start()))
    for (const n of upTo(10)) for (const key of keys) await publish(key, n + 10)

    await ended.take(100)
    await empty()
    await Promise.all(started.map((one) => one.stop()))

    expect(overlaps).toEqual([])
    for (const key of keys) expect(runs.get(key)).toEqual(upTo(20))
  })

  test('find a message of a key that was committed after others of a later place', async () => {
    const outbox = outboxOf({ queues })
    const got = collector<string>('runs')
    outbox.subscribe('orders', ({ key, body }) => got.add(`${key}${body}`), often)
    await using _ = await outbox.start()
    const late = await bench.pool().connect()
    await late.query('begin')
    await outbox.publish(late, 'orders', 1, { key: 'a' })
    for (const n of upTo(20)) await outbox.publishNow('orders', n, { key: 'b' })
    await got.take(20)
    await late.query('commit')
    late.release()

    expect(await got.find((run) => run === 'a1')).toBe('a1')
    await empty()
  })

  test('hand a key on: what one settles last, another goes on with', async () => {
    const [first, second] = [outboxOf({ queues }), outboxOf({ queues })]
    const got = collector<string>('runs')
    for (const [name, outbox] of Object.entries({ first, second }))
      outbox.subscribe('orders', ({ body }) => got.add(`${body} ${name}`), often)
    const running = await first.start()
    await publish('a', 1, 2)
    await got.take(2)
    await running.stop()
    await using _ = await second.start()
    await publish('a', 3)

    expect(await got.take(3)).toEqual(['1 first', '2 first', '3 second'])
    await empty()
  })
})

describe('a process that is gone', () => {
  test('leaves its keys where they were: they go on with the message that it had', async () => {
    await publish('a', 1, 2, 3)
    // As one that has claimed all three, run the first, and died.
    const gone = `update outbox set lease_token = gen_random_uuid(), leased_until = now() + interval '300 ms', deliveries = 1`
    await database.query(gone)
    const outbox = outboxOf({ queues })
    const got = collector<Message>('runs')
    outbox.subscribe('orders', (message) => got.add(message), often)
    await using _ = await outbox.start()

    const all = await got.take(3)

    expect(all.map(({ body, deliveries }) => [body, deliveries])).toEqual([
      [1, 2],
      [2, 2],
      [3, 2],
    ])
    await empty()
  })

  test('loses the first of a key: what it had behind that is given back, and run by who has the key', async () => {
    const outbox = outboxOf({ queues })
    const started = collector<{ message: Message; context: Context }>('runs')
    const go = signal('leave to end')
    outbox.subscribe(
      'orders',
      async (message, context) => {
        started.add({ message, context })
        if (started.all.length === 1) await go.wait()
      },
      { ...often, leaseMs: 60_000 },
    )
    await publish('a', 1, 2, 3)
    const running = await outbox.start()
    await started.take(1)
    // Another has it, and has not ended.
    const stolen = 'update outbox set lease_token = gen_random_uuid() where body = $1'
    await database.query(stolen, [Buffer.from('1')])
    go.send()
    await outbox.told.first('lease_lost')

    await eventually(
      async () => (await messages()).filter((row) => row['lease_token'] === null).length === 2,
      {
        what: 'those behind it to be given back',
      },
    )
    expect((await messages()).map((row) => row['deliveries'])).toEqual([1, 0, 0])
    expect(started.all.map(({ message }) => message.body)).toEqual([1])
    // That one ends it.
    await database.query(`delete from outbox where lease_token is not null`)
    await started.take(3)
    expect(started.all.map(({ message }) => message.body)).toEqual([1, 2, 3])
    await empty()
    await running.stop()
  })
})

describe('a stop', () => {
  test('gives back what stands behind a message that runs, ends that, and others go on with the key', async () => {
    const [outbox, other] = [outboxOf({ queues }), outboxOf({ queues })]
    const got = collector<unknown>('runs')
    const go = signal('leave to end')
    outbox.subscribe('orders', async ({ body }) => {
      got.add(body)
      await go.wait()
    })
    other.subscribe('orders', ({ body }) => got.add(body), often)
    await publish('a', 1, 2, 3)
    const running = await outbox.start()
    await got.take(1)
    const stopped = running.stop()
    await eventually(
      async () => (await messages()).filter((row) => row['lease_token'] === null).length === 2,
      {
        what: 'what did not run to be given back',
      },
    )
    await using _ = await other.start()
    go.send()
    await stopped

    expect(await got.take(3)).toEqual([1, 2, 3])
    await empty()
  })

  test('of a drain comes when all of a key is done, however many there are', async () => {
    const outbox = outboxOf({ queues })
    const got: unknown[] = []
    outbox.subscribe('orders', ({ body }) => void got.push(body), { ...often, concurrency: 2 })
    await publish('a', ...upTo(300))

    expect(await outbox.drain()).toMatchObject({ acked: 300, isEmpty: true })
    expect(got).toEqual(upTo(300))
  })

  test('of a drain comes though a key waits for a message that is to be tried later', async () => {
    const outbox = outboxOf({ queues })
    outbox.subscribe(
      'orders',
      () => {
        throw new Error('not now')
      },
      { ...often, retry: () => 3_600_000 },
    )
    await publish('a', 1, 2)

    expect(await outbox.drain()).toMatchObject({ retried: 1, acked: 0, isEmpty: true })
    expect(await messages()).toMatchObject([
      { attempts: 1 },
      { attempts: 0, deliveries: 0, lease_token: null },
    ])
  })
})

describe('a drain', () => {
  // For one that does not end by itself: then it says that it is not empty. Sweeps get a twentieth of the time, on a busy machine seconds lie between two.
  const deadlineMs = 60_000

  test('ends though more messages than a sweep looks at wait for one that is to be tried later, and an older transaction is open', {
    timeout: longTestLimitMs,
  }, async () => {
    await publish('a', 0)
    await database.query(`update outbox set attempts = 1, due_at = now() + interval '1 hour'`)
    await publish('a', ...upTo(mostRowLooks + 1))
    await using _ = await openTransaction()
    const outbox = outboxOf({ queues })
    outbox.subscribe('orders', () => {}, often)
    await publish('b', 1)

    expect(await outbox.drain({ deadlineMs })).toMatchObject({ acked: 1, isEmpty: true })
    expect(await messages()).toHaveLength(mostRowLooks + 2)
  })

  test('ends though more keys than a sweep looks at wait for a message that is to be tried later', {
    timeout: longTestLimitMs,
  }, async () => {
    const waiting = `insert into outbox (id, queue, key, body, attempts, due_at)
        select gen_random_uuid(), 'orders', 'k' || n, '1', 1, now() + interval '1 hour' from generate_series(1, $1) as n`
    await database.query(waiting, [mostKeyLooks + 1])
    const outbox = outboxOf({ queues })
    outbox.subscribe('orders', () => {}, often)
    await publish('b', 1)

    expect(await outbox.drain({ deadlineMs })).toMatchObject({ acked: 1, isEmpty: true })
  })
})

describe('who agrees', () => {
  test('on the order of a queue starts; who has it without does not, and is told which', async () => {
    const ordered = outboxOf({ queues })
    ordered.subscribe('orders', () => {})
    await (await ordered.start()).stop()
    const others: readonly OutboxOptions[] = [{ queues: { orders: {} } }, {}]
    for (const options of others) {
      const outbox = outboxOf(options)
      outbox.subscribe('orders', () => {})
      await expect(outbox.start()).rejects.toMatchObject({
        code: 'OUTBOX_ORDER_MISMATCH',
        message: expect.stringContaining('"orders"'),
      })
    }
    await database.query('delete from outbox_queues')
  })

  describe('who has started without the order', () => {
    afterEach(() => database.query('delete from outbox_queues'))
    const writeDown = `insert into outbox_queues (name, message_order) values ('orders', 'key')`
    const mismatch = ({ told }: ReturnType<typeof outboxOf>) =>
      told.events.find((event) => event.kind === 'warning' && event.code === 'order_mismatch')

    test('and subscribes to an ordered queue afterwards, claims nothing of it, and says so, once', async () => {
      await database.query(writeDown)
      const outbox = outboxOf()
      const got = collector<string>('runs')
      await using _ = await outbox.start()
      outbox.subscribe(['orders', 'mails'], ({ queue, body }) => got.add(`${queue} ${body}`), often)
      await publish('a', 1, 2)
      for (const n of upTo(3)) {
        await outbox.publishNow('mails', n)
        await got.take(n)
      }
      await mismatch(outbox)

      expect(outbox.told.of('warning').filter(({ code }) => code === 'order_mismatch')).toMatchObject([
        {
          fields: { queue: 'orders' },
          error: { code: 'OUTBOX_ORDER_MISMATCH', hint: expect.stringContaining(`order: 'key'`) },
        },
      ])
      expect(outbox.health()).toMatchObject({ ok: false, reasons: [expect.stringContaining('"orders"')] })
      await expect(outbox.drain()).rejects.toMatchObject({ code: 'OUTBOX_ORDER_MISMATCH' })
      expect(got.all.every((run) => run.startsWith('mails'))).toBe(true)
      expect((await messages()).map((row) => row['deliveries'])).toEqual([0, 0])
    })

    test('before anybody wrote it down, gives back what it has not begun, and leaves the rest to those who know', async () => {
      const [old, ordered] = [outboxOf({ queues: { orders: {} } }), outboxOf({ queues })]
      const got = collector<string>('runs')
      const go = signal('leave to end')
      old.subscribe(
        'orders',
        async ({ body }) => {
          got.add(`old ${body}`)
          await go.wait()
        },
        { ...often, concurrency: 1, prefetch: 5, leaseMs: 600_000 },
      )
      ordered.subscribe('orders', ({ body }) => got.add(`ordered ${body}`), often)
      await publish('a', 1, 2, 3)
      await using _old = await old.start()
      await got.take(1)
      await using _ordered = await ordered.start()
      await old.told.take('released', 2)
      await publish('a', 4)
      go.send()

      expect(await got.take(4)).toEqual(['old 1', 'ordered 2', 'ordered 3', 'ordered 4'])
      expect(old.health().ok).toBe(false)
      await empty()
    })

    test('goes on by itself when the order is given up', async () => {
      await database.query(writeDown)
      const outbox = outboxOf()
      const got = collector<unknown>('runs')
      await using _ = await outbox.start()
      outbox.subscribe('orders', ({ body }) => got.add(body), { pollMs: noPolling })
      await publish('a', 1, 2)
      await mismatch(outbox)
      await database.query(`update outbox_queues set message_order = 'none'`)

      expect((await got.take(2)).toSorted()).toEqual([1, 2])
      expect(outbox.health().ok).toBe(true)
      expect(outbox.told.events.all.filter(({ kind }) => kind.startsWith('queue_'))).toEqual([])
      await empty()
    })
  })

  test('cannot handle an ordered queue in batches', () => {
    const outbox = outboxOf({ queues })

    expect(() => outbox.subscribeBatch('orders', () => {})).toThrow(
      expect.objectContaining({
        code: 'OUTBOX_INVALID_OPTION',
        message: expect.stringContaining('one by one'),
      }),
    )
  })

  test('on a generation leaves a key to newer code from the first message of that on', async () => {
    const got = collector<string>('runs')
    const codes = upTo(2).map((generation) => {
      const outbox = outboxOf({ queues, generation })
      outbox.subscribe('orders', ({ body }) => got.add(`${body} by ${generation}`), often)
      return outbox
    })
    await codes[0]!.publishNow('orders', 1, { key: 'a' })
    await codes[1]!.publishNow('orders', 2, { key: 'a' })
    await codes[0]!.publishNow('orders', 3, { key: 'a' })
    await using _old = await codes[0]!.start()
    await got.take(1)
    await codes[0]!.publishNow('orders', 4, { key: 'b' })
    await got.take(2)
    await using _new = await codes[1]!.start()

    const all = await got.take(4)
    expect(all.slice(0, 3)).toEqual(['1 by 1', '4 by 1', '2 by 2'])
    expect(all[3]).toMatch(/^3 by/)
    await empty()
  })
})
