// Mode `sync`, where deliveries meet something else: a replay, a drain, the end of the test, an open transaction.
import { expect, onTestFinished, test, vi } from 'vitest'
import { signal } from '../../../../tests/support/signals.ts'
import { type OutboxEvent, TerminalError } from '../index.ts'
import type { createOutbox } from '../outbox.ts'
import { constant } from '../policies.ts'
import { createTestOutbox } from './create-test-outbox.ts'

/** What an application has that the test kit does not know. */
const standIn = { anything: true } as never

async function testOutbox(options: Parameters<typeof createOutbox>[0] = {}) {
  const test = await createTestOutbox({ logger: false, ...options })
  onTestFinished(test.dispose)
  return { test, outbox: test.outbox }
}

test('a replayed dead letter is handled before replay returns, and was not published twice', async () => {
  const { test, outbox } = await testOutbox()
  const attempts: number[] = []
  outbox.subscribe('orders', ({ attempt }) => {
    attempts.push(attempt)
    if (attempts.length === 1) throw new TerminalError('no')
  })
  await outbox.publish(standIn, 'orders', 1)
  const [letter] = test.dead()

  expect(await outbox.deadLetters.replay(letter!.id, { by: 'jo' })).toEqual({
    replayed: true,
    lands: 'anywhere',
  })

  expect(attempts).toEqual([1, 1])
  expect(test.dead()).toEqual([])
  expect(test.published()).toHaveLength(1)
})

test('events name the handler', async () => {
  const events: OutboxEvent[] = []
  const { outbox } = await testOutbox({ onEvent: (event: OutboxEvent) => void events.push(event) })
  outbox.subscribe('orders', function ship() {})

  await outbox.publish(standIn, 'orders', 1)

  expect(events.find(({ kind }) => kind === 'acked')).toMatchObject({ handler: 'ship', queue: 'orders' })
})

test('drain waits for handlers that are under way', async () => {
  const { test, outbox } = await testOutbox()
  const started = signal('the handler starts')
  const gate = signal('the gate opens')
  let isOver = false
  outbox.subscribe('orders', async () => {
    started.send()
    await gate.wait()
    isOver = true
  })
  const publishing = outbox.publish(standIn, 'orders', 1)
  await started.wait()

  const draining = test.drain()
  gate.send()
  await draining

  expect(isOver).toBe(true)
  await publishing
})

test('what a handler publishes while the test outbox is disposed does not reach the real database', async () => {
  const real: string[] = []
  const query = async (text: string) => {
    real.push(text)
    return []
  }
  const database = {
    query,
    transaction: <T>(work: (tx: { query: typeof query }) => Promise<T>) => work({ query }),
  }
  const { test, outbox } = await testOutbox({ database })
  const started = signal('the handler starts')
  const gate = signal('the gate opens')
  const ended = signal('the handler ends')
  outbox.subscribe('orders', async () => {
    started.send()
    await gate.wait()
    await outbox.publishNow('emails', 1)
    ended.send()
  })
  void outbox.publish(standIn, 'orders', 1)
  await started.wait()

  let isDisposed = false
  const disposed = test.dispose().then(() => {
    isDisposed = true
  })
  // Who did not wait for the handler would be through by then.
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(isDisposed).toBe(false)
  gate.send()
  await Promise.all([disposed, ended.wait()])

  expect(real).toEqual([])
})

test('a message that an open transaction has taken out is not waited for', async () => {
  const { test, outbox } = await testOutbox()
  const handler = vi.fn(() => Promise.reject(new Error('no')))
  outbox.subscribe('reminders', handler, { retry: constant({ delayMs: 1_000 }) })
  await outbox.publish(standIn, 'reminders', 1, { timerId: 't' })

  await test.transaction(async (tx) => {
    await outbox.cancelTimer(tx, 'reminders', 't')
    await test.advance(2_000)
    await test.drain()
  })

  expect(handler).toHaveBeenCalledTimes(1)
  expect(test.pending()).toEqual([])
})

test('a handler that is running when the test outbox is disposed is told to stop', async () => {
  const { test, outbox } = await testOutbox()
  const started = signal<AbortSignal>('the handler starts')
  outbox.subscribe('orders', (_, { signal }) => {
    started.send(signal)
    return new Promise(() => {})
  })
  void outbox.publish(standIn, 'orders', 1)
  const told = await started.wait()

  await test.dispose()

  expect(told.reason).toMatchObject({ code: 'OUTBOX_STOPPING' })
})
