// A queue that gave its order up: what was for later has its key.
import { expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'

const { database, outboxOf } = useBench()

/** A message for later of an ordered queue that is due, and the order given up before it joined its key. */
async function giveUp(): Promise<void> {
  const outbox = outboxOf({ queues: { orders: { order: 'key' } } })
  await outbox.publishNow('orders', 1, { key: 'a', delayMs: 60_000 })
  await database.query(`update outbox set due_at = now() - interval '1 s'`)
  await database.query(`update outbox_queues set message_order = 'none'`)
}

test('a message for later is handled with its key after the order was given up', async () => {
  await giveUp()
  const outbox = outboxOf({ queues: { orders: {} } })
  const keys: unknown[] = []
  outbox.subscribe('orders', ({ key }) => void keys.push(key))
  await outbox.drain()

  expect(keys).toEqual(['a'])
})

test.each(['table', 'in-place'] as const)(
  'a message for later that dies after the order was given up is a dead letter with its key (%s)',
  async (deadLetters) => {
    await giveUp()
    const outbox = outboxOf({ queues: { orders: {} }, deadLetters })
    outbox.subscribe('orders', (_, context) => context.reject('no'))
    await outbox.drain()

    expect((await outbox.deadLetters.list()).items).toMatchObject([{ queue: 'orders', key: 'a' }])
  },
)
