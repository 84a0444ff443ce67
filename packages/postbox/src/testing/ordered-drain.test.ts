import { expect, test as it, onTestFinished } from 'vitest'
import { signal } from '../../../../tests/support/signals.ts'
import { createTestOutbox } from './create-test-outbox.ts'

async function failingOnce() {
  const test = await createTestOutbox(
    { logger: false, queues: { orders: { order: 'key' } } },
    { mode: 'loop' },
  )
  onTestFinished(test.dispose)
  const got: unknown[] = []
  let failures = 1
  const handler = ({ body }: { body: unknown }): void => {
    got.push(body)
    if (body === 1 && failures-- > 0) throw new Error('not now')
  }
  test.outbox.subscribe('orders', handler, { retry: () => 1_000 })
  return { test, got }
}

it('a drain of an ordered queue ends after a message that was tried again', async () => {
  const { test, got } = await failingOnce()
  for (const n of [1, 2]) await test.outbox.publishNow('orders', n, { key: 'a' })
  await test.drain()
  await test.advance(2_000)

  expect(await test.drain()).toMatchObject({ isEmpty: true })
  expect(got).toEqual([1, 1, 2])
})

it('a drain of an ordered queue lets others go on while it waits for who publishes to a key', async () => {
  const { test, got } = await failingOnce()
  await test.outbox.publishNow('orders', 9, { key: 'a', delayMs: 500 })
  const go = signal('leave to commit')
  const publishing = test.transaction(async (tx) => {
    await test.outbox.publish(tx, 'orders', 2, { key: 'a' })
    await go.wait()
  })
  await test.advance(700)
  const draining = test.drain()
  go.send()
  await publishing
  await test.advance(100)

  expect(await draining).toMatchObject({ isEmpty: true })
  expect(got).toEqual([2, 9])
})

it('a drain of an ordered queue ends though a message that has joined its key waits there', async () => {
  const { test, got } = await failingOnce()
  await test.outbox.publishNow('orders', 9, { key: 'a', delayMs: 500 })
  await test.outbox.publishNow('orders', 1, { key: 'a' })
  await test.drain()
  await test.advance(700)

  expect(await test.drain()).toMatchObject({ isEmpty: true })
  expect(got).toEqual([1])
})
