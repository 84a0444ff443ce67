import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { OutboxEvent } from '../index.ts'
import { constant } from '../policies.ts'
import { createTestOutbox } from './create-test-outbox.ts'

const hour = 3_600_000
const by = 'jo'

async function testOutbox(mode: 'sync' | 'loop') {
  const kinds: string[] = []
  const onEvent = ({ kind }: OutboxEvent): void => void kinds.push(kind)
  const test = await createTestOutbox({ logger: false, onEvent }, { mode })
  onTestFinished(test.dispose)
  return { test, outbox: test.outbox, kinds }
}

describe('a paused queue of a test outbox', () => {
  test('keeps what is published to it, until resuming it runs the handlers', async () => {
    const { test, outbox } = await testOutbox('sync')
    const handler = vi.fn()
    outbox.subscribe(['orders', 'mails'], ({ queue, body }) => handler(queue, body))
    await outbox.pause('orders', { by })
    await outbox.publishNow('orders', 1)
    await outbox.publishNow('orders', 2, { delayMs: hour })
    await test.transaction((tx) => outbox.publish(tx, 'orders', 3))
    await test.feed('orders', 4)
    await outbox.publishNow('mails', 5)
    expect(handler.mock.calls).toEqual([['mails', 5]])
    expect(await test.drain()).toMatchObject({ acked: 0, isEmpty: true })
    await test.advance(2 * hour)
    expect(test.pending('orders')).toMatchObject(Array.from({ length: 4 }, () => ({ deliveries: 0 })))

    expect(await outbox.resume('orders', { by })).toEqual({ resumed: true })

    expect(handler.mock.calls.slice(1).map(([, body]) => body)).toEqual([1, 2, 3, 4])
    expect(test.pending()).toEqual([])
    // A resume is no publishing.
    expect(test.published('orders')).toHaveLength(3)
  })

  test('fires what was armed for later when it is resumed, as publishing does, and leaves retries to their time', async () => {
    const { test, outbox } = await testOutbox('sync')
    const attempts: unknown[] = []
    outbox.subscribe(
      'orders',
      ({ body, attempt }) => {
        attempts.push([body, attempt])
        if (body === 'fails' && attempt === 1) throw new Error('no')
      },
      { retry: constant({ delayMs: hour, jitter: 'none' }) },
    )
    await outbox.publishNow('orders', 'fails')
    await outbox.pause('orders', { by })
    await outbox.publishNow('orders', 'timer', { timerId: 't', delayMs: hour })

    await outbox.resume('orders', { by })

    expect(attempts).toEqual([
      ['fails', 1],
      ['timer', 1],
    ])
    await test.advance(hour)
    expect(attempts.at(-1)).toEqual(['fails', 2])
    expect(test.pending()).toEqual([])
  })

  test('keeps follow-ons of other queues, too', async () => {
    const { test, outbox } = await testOutbox('sync')
    const handled: unknown[] = []
    outbox.subscribe('orders', ({ body }) => void handled.push(body))
    outbox.subscribe('mails', async (_, context) => void (await context.publish('orders', 'followed')))
    await outbox.pause('orders', { by })
    await outbox.publishNow('mails', 1)

    expect([handled, test.pending('orders').length]).toEqual([[], 1])
    await outbox.resume('orders', { by })
    expect(handled).toEqual(['followed'])
  })

  test('is left alone by the loops, which drain all the same, and delivered by them when it is resumed', async () => {
    const { test, outbox, kinds } = await testOutbox('loop')
    const handler = vi.fn()
    outbox.subscribe('orders', handler)
    await outbox.pause('orders', { by })
    await outbox.publishNow('orders', 1)
    await outbox.publishNow('orders', 2, { delayMs: hour })
    await test.drain()
    await test.advance(2 * hour)
    expect(handler).not.toHaveBeenCalled()

    await outbox.resume('orders', { by })
    await test.drain()

    expect(handler).toHaveBeenCalledTimes(2)
    expect(kinds.filter((kind) => kind.startsWith('queue_'))).toEqual(['queue_paused', 'queue_resumed'])
  })
})
