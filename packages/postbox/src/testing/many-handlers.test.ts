// More handlers at once than a process starts in one turn of its event loop: the kit has no such turns.
import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, test } from 'vitest'
import { createTestOutbox } from './create-test-outbox.ts'

const standIn = { anything: true } as never
const many = 1_000
const bodies = Array.from({ length: many }, (_, n) => n)

test('all that are due begin at their time, and are out of time together', async () => {
  await using box = await createTestOutbox({ logger: false }, { mode: 'loop' })
  const startedAt: number[] = []
  let outOfTime = 0
  const untilTold = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      startedAt.push(box.now().getTime())
      signal.addEventListener('abort', () => {
        outOfTime++
        resolve()
      })
    })
  box.outbox.subscribe('orders', (_, { signal }) => untilTold(signal), {
    concurrency: many,
    timeoutMs: 5_000,
  })
  // What is loaded when it is first needed takes turns that nobody counts.
  box.outbox.subscribe('others', () => {})
  await box.outbox.publishMany(standIn, 'others', [1, 2], { delayMs: 1 })
  await box.advance(1)
  await box.drain()
  const begun = box.now().getTime()
  await box.outbox.publishMany(standIn, 'orders', bodies, { delayMs: 1_000 })
  await box.advance(6_000)

  expect(startedAt).toEqual(bodies.map(() => begun + 1_000))
  expect(outOfTime).toBe(many)
})

test('each runs in the context of whoever published it, where the kit delivers at once', async () => {
  await using box = await createTestOutbox({ logger: false })
  const context = new AsyncLocalStorage<number>()
  const seen: unknown[] = []
  box.outbox.subscribe('orders', ({ body }) => void seen.push([body, context.getStore()]))
  const publish = (n: number) => context.run(n, () => box.outbox.publish(standIn, 'orders', n))
  await Promise.all(bodies.map(publish))

  expect(seen).toHaveLength(many)
  expect(seen).toEqual(expect.arrayContaining(bodies.map((n) => [n, n])))
})
