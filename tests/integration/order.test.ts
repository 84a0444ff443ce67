// Queues in the order of their keys: per key one at a time, in the order of commits, whoever claims and whatever fails.
import type { Message } from 'postbox'
import { describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench
const queues = { orders: { order: 'key' }, letters: {} } as const
const often = { pollMs: { min: 20, max: 40 } }
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)
const numbersOf = (all: readonly Message[], key: string | null) =>
  all.filter((message) => message.key === key).map(({ body }) => body)

describe('the messages of a key', () => {
  test('are handled in the order of their commits, beside those of other keys and those without one', async () => {
    const outbox = outboxOf({ queues })
    const got = collector<Message>('deliveries')
    outbox.subscribe('orders', (message) => got.add(message), { ...often, concurrency: 7 })
    await inTransaction(bench.pool(), (tx) =>
      outbox.publishMany(tx, 'orders', upTo(60), (n) => {
        const key = ['a', 'b', undefined][Number(n) % 3]
        return key === undefined ? {} : { key }
      }),
    )

    await using _ = await outbox.start()
    const all = await got.take(60)

    const every = (rest: number) => upTo(60).filter((n) => n % 3 === rest)
    expect(numbersOf(all, 'a')).toEqual(every(0))
    expect(numbersOf(all, 'b')).toEqual(every(1))
    expect(numbersOf(all, null).toSorted((a, b) => Number(a) - Number(b))).toEqual(every(2))
    await eventually(async () => (await messages()).length === 0, { what: 'all of them to be settled' })
  })

  test('wait for one that is to be tried again, and those of other keys do not', async () => {
    const outbox = outboxOf({ queues })
    const got = collector<string>('runs')
    let failures = 2
    outbox.subscribe(
      'orders',
      ({ key, body }) => {
        got.add(`${key}${body}`)
        if (key === 'a' && body === 1 && failures-- > 0) throw new Error('not now')
      },
      { ...often, retry: () => 100 },
    )
    for (const key of ['a', 'b']) for (const n of upTo(3)) await outbox.publishNow('orders', n, { key })

    await using _ = await outbox.start()
    const all = await got.take(8)

    expect(all.filter((run) => run.startsWith('a'))).toEqual(['a1', 'a1', 'a1', 'a2', 'a3'])
    expect(all.filter((run) => run.startsWith('b'))).toEqual(['b1', 'b2', 'b3'])
    expect(all.indexOf('b3')).toBeLessThan(all.lastIndexOf('a1'))
    expect(await database.query(`select 1 from outbox_dead`)).toEqual([])
  })
})

test('a key with many messages leaves idle slots to other keys', async () => {
  const outbox = outboxOf({ queues })
  const got = collector<string>('runs')
  const go = signal('leave to end')
  const handler = async ({ key }: Message): Promise<void> => {
    got.add(`${key}`)
    if (key === 'a') await go.wait()
  }
  outbox.subscribe('orders', handler, { ...often, concurrency: 4, prefetch: 0 })
  for (const n of upTo(6)) await outbox.publishNow('orders', n, { key: 'a' })
  await using _ = await outbox.start()
  await got.take(1)
  await outbox.publishNow('orders', 1, { key: 'b' })

  expect(await got.take(2)).toEqual(['a', 'b'])
  go.send()
  await eventually(async () => (await messages()).length === 0, { what: 'all of them to be settled' })
})
