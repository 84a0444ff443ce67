// Publishing to keys of ordered queues: who waits for whom, and what becomes of it.
import type pg from 'pg'
import type { Message } from 'postbox'
import { describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench
const queues = { orders: { order: 'key' }, mails: { order: 'key' } } as const
const often = { pollMs: { min: 10, max: 30 } }
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)
const empty = () => eventually(async () => (await messages()).length === 0, { what: 'all to be settled' })
const waits = () =>
  eventually(
    async () =>
      (
        await database.query(
          `select 1 from pg_stat_activity where wait_event = 'advisory' and application_name like $1`,
          [`%${database.applicationName}%`],
        )
      ).length > 0,
    { what: 'somebody to wait for a key' },
  )

describe('publishers of a key', () => {
  test('commit in the order of their places, however many there are', async () => {
    const outbox = outboxOf({ queues })
    const committed: string[] = []
    await Promise.all(
      upTo(8).map(async (who) => {
        for (const n of upTo(5)) {
          let seq = ''
          await inTransaction(bench.pool(), async (tx) => {
            seq = (await outbox.publish(tx, 'orders', `${who} ${n}`, { key: 'a' })).id
          })
          committed.push(seq)
        }
      }),
    )

    // What a publisher is told of his commit may overtake another's, so only each one's own order is sure from here.
    const rows = await messages()
    expect(rows.map((row) => row['id']).toSorted()).toEqual(committed.toSorted())
    for (const who of upTo(8)) {
      const own = rows.map((row) => String(row['body'])).filter((body) => body.startsWith(`${who} `))
      expect(own).toEqual(upTo(5).map((n) => `${who} ${n}`))
    }
  })

  test('of many keys in one batch do not lock each other out, whatever the order of the keys', async () => {
    const outbox = outboxOf({ queues })
    const keys = upTo(40).map((n) => `k${n}`)
    const batch = (reverse: boolean) =>
      inTransaction(bench.pool(), (tx) =>
        outbox.publishMany(tx, 'orders', reverse ? keys.toReversed() : keys, (key) => ({ key: String(key) })),
      )

    await Promise.all(upTo(20).map((n) => batch(n % 2 === 0)))

    expect(await messages()).toHaveLength(20 * 40)
  })

  test('of two keys one after the other, crosswise, are told of their deadlock, and one of them gets through', async () => {
    const outbox = outboxOf({ queues })
    const has = [signal('the first has a key'), signal('the second has a key')]
    const crosswise = (own: number, [first, second]: readonly [string, string]) =>
      inTransaction(bench.pool(), async (tx) => {
        await tx.query(`set local deadlock_timeout = '50ms'`)
        await outbox.publish(tx, 'orders', 1, { key: first })
        has[own]!.send()
        await has[1 - own]!.wait()
        await outbox.publish(tx, 'orders', 2, { key: second })
      })

    const ends = await Promise.allSettled([crosswise(0, ['a', 'b']), crosswise(1, ['b', 'a'])])

    expect(ends.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    const refused = ends.find((end) => end.status === 'rejected')
    expect(refused?.reason).toMatchObject({ code: '40P01' })
    expect(await messages()).toHaveLength(2)
  })

  test('let go of it with their savepoint: a message that was taken back is not waited for', async () => {
    const outbox = outboxOf({ queues })
    await inTransaction(bench.pool(), async (tx) => {
      await tx.query('savepoint before')
      await outbox.publish(tx, 'orders', 'taken back', { key: 'a' })
      await tx.query('rollback to savepoint before')
      await outbox.publishNow('orders', 'first', { key: 'a' })
      await outbox.publish(tx, 'orders', 'second', { key: 'a' })
    })

    expect((await messages()).map((row) => String(row['body']))).toEqual(['first', 'second'])
  })

  test('keep it with a savepoint that they released', async () => {
    const outbox = outboxOf({ queues })
    let second: Promise<unknown> = Promise.resolve()
    await inTransaction(bench.pool(), async (tx) => {
      await tx.query('savepoint before')
      await outbox.publish(tx, 'orders', 'first', { key: 'a' })
      await tx.query('release savepoint before')
      second = outbox.publishNow('orders', 'second', { key: 'a' })
      await waits()
    })
    await second

    expect((await messages()).map((row) => String(row['body']))).toEqual(['first', 'second'])
  })

  test('need none: messages without a key are in nobody’s way', async () => {
    const outbox = outboxOf({ queues })
    const got = collector<unknown>('runs')
    outbox.subscribe('orders', ({ body }) => got.add(body), often)
    await inTransaction(bench.pool(), async (tx) => {
      await outbox.publish(tx, 'orders', 1)
      await outbox.publishNow('orders', 2)
    })
    await using _ = await outbox.start()

    expect((await got.take(2)).toSorted()).toEqual([1, 2])
    await empty()
  })
})

describe('follow-ons into an ordered queue', () => {
  test('come in the order of the messages that they follow', async () => {
    const outbox = outboxOf({ queues })
    const got = collector<unknown>('mails')
    outbox.subscribe(
      'orders',
      async ({ body, key }, context) => {
        context.publish('mails', body, { key: key ?? 'none' })
      },
      often,
    )
    outbox.subscribe('mails', ({ body }) => got.add(body), often)
    for (const n of upTo(10)) await outbox.publishNow('orders', n, { key: 'a' })
    await using _ = await outbox.start()

    expect(await got.take(10)).toEqual(upTo(10))
    await empty()
  })

  test('wait until nobody publishes to their key any more, and nothing else waits with them', async () => {
    const outbox = outboxOf({ queues })
    const got = collector<Message>('runs')
    outbox.subscribe(
      'orders',
      async (message, context) => {
        got.add(message)
        if (message.key === 'a') context.publish('mails', 'follow-on', { key: 'held' })
      },
      often,
    )
    const tx = await bench.pool().connect()
    await tx.query('begin')
    await outbox.publish(tx, 'mails', 'first', { key: 'held' })
    await outbox.publishNow('orders', 1, { key: 'a' })
    await using _ = await outbox.start()
    await outbox.told.first('settle_failed')
    await outbox.publishNow('orders', 2, { key: 'b' })
    await outbox.told.first('acked')
    await tx.query('commit')
    tx.release()
    await outbox.told.take('acked', 2)

    expect((await messages()).map((row) => String(row['body']))).toEqual(['first', 'follow-on'])
    expect(got.all.map(({ body }) => body)).toEqual([1, 2])
  })
})

describe('the transaction of a handler', () => {
  test('is done when the next of its key starts', async () => {
    await database.query('create table if not exists effects (n int)')
    const outbox = outboxOf({ queues })
    const seen: unknown[] = []
    const done = collector<unknown>('runs')
    outbox.subscribe(
      'orders',
      async ({ body }, context) => {
        seen.push((await database.query('select n from effects order by n')).map(({ n }) => n))
        await context.transaction((tx) =>
          (tx as pg.PoolClient).query('insert into effects values ($1)', [body]),
        )
        done.add(body)
      },
      often,
    )
    for (const n of upTo(3)) await outbox.publishNow('orders', n, { key: 'a' })
    await using _ = await outbox.start()
    await done.take(3)
    await empty()

    expect(seen).toEqual([[], [1], [1, 2]])
    await database.query('drop table effects')
  })
})
