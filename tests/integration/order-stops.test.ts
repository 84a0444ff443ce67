// Ordered queues: who goes on with a key when the process that had it stops, or never hears what became of its message.
import { noRetry } from 'postbox'
import { expect, test } from 'vitest'
import { noPolling, watchSleep } from '../rolling/sleep-watch.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench
const queues = { orders: { order: 'key' } } as const
// Nobody looks by himself while the test lasts.
const seldom = { pollMs: noPolling }
const publish = (...numbers: number[]) =>
  inTransaction(bench.pool(), (tx) => outboxOf({ queues }).publishMany(tx, 'orders', numbers, { key: 'a' }))
const empty = () => eventually(async () => (await messages()).length === 0, { what: 'all to be settled' })

test('a process that stops tells the others of a key whose first message it has skipped', async () => {
  const { options, asleep } = watchSleep()
  const [first, second] = [outboxOf({ queues }), outboxOf({ queues, ...options })]
  const got = collector<string>('runs')
  const go = signal('leave to fail')
  const fail = async ({ body }: { body: unknown }): Promise<void> => {
    got.add(`first ${body}`)
    await go.wait()
    throw new Error('not ever')
  }
  first.subscribe('orders', fail, { ...seldom, failingHead: 'skip', retry: noRetry(), concurrency: 1 })
  second.subscribe('orders', ({ body }) => got.add(`second ${body}`), seldom)
  await publish(1, 2)
  const running = await first.start()
  await got.take(1)
  await using _ = await second.start()
  await asleep.wait()
  const stopping = running.stop()
  go.send()
  await stopping

  expect(await got.take(2)).toEqual(['first 1', 'second 2'])
  await empty()
})

test('the next of a key is found though nobody heard that the one before is gone', async () => {
  const { options, isAsleep } = watchSleep()
  const outbox = outboxOf({ queues, ...options })
  const got = collector<unknown>('runs')
  const go = signal('leave to end')
  const handler = async ({ body }: { body: unknown }): Promise<void> => {
    got.add(body)
    if (body === 1) await go.wait()
  }
  outbox.subscribe('orders', handler, { ...seldom, concurrency: 5 })
  await using _ = await outbox.start()
  await publish(1)
  await got.take(1)
  const looks = outbox.told.of('claimed').length
  await publish(2)
  await outbox.told.take('claimed', looks + 1)
  await eventually(async () => isAsleep(), { what: 'it to sleep until somebody wakes it' })
  // As its own delete whose answer was lost, or as somebody's own SQL.
  await database.query('delete from outbox where body = $1', [Buffer.from('1')])
  go.send()

  expect(await got.take(2)).toEqual([1, 2])
  await empty()
})
