import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createTestOutbox } from './create-test-outbox.ts'
import { createTestClock } from './test-clock.ts'
import { createTestStore } from './test-store.ts'
import { type TestTransaction, testHandle } from './test-transaction.ts'

async function testOutbox() {
  const test = await createTestOutbox({ logger: false })
  onTestFinished(test.dispose)
  const handler = vi.fn()
  test.outbox.subscribe('orders', handler)
  return { test, outbox: test.outbox, handler }
}

describe('a transaction of the test kit', () => {
  test('shows its messages to itself alone, and hands them over when it commits', async () => {
    const { test, outbox, handler } = await testOutbox()

    const value = await test.transaction(async (tx) => {
      await outbox.publish(tx, 'orders', 1)
      expect(await outbox.pending(tx)).toHaveLength(1)
      expect(test.pending()).toEqual([])
      expect(test.published()).toEqual([])
      expect(handler).not.toHaveBeenCalled()
      return 'done'
    })

    expect(value).toBe('done')
    expect(test.published('orders')).toHaveLength(1)
    expect(handler).toHaveBeenCalledTimes(1)
  })

  test('that throws is rolled back: nothing was published, nothing is handled', async () => {
    const { test, outbox, handler } = await testOutbox()
    const failing = test.transaction(async (tx) => {
      await outbox.publish(tx, 'orders', 1)
      throw new Error('no stock')
    })

    await expect(failing).rejects.toThrow('no stock')
    expect(test.published()).toEqual([])
    expect(test.pending()).toEqual([])
    expect(handler).not.toHaveBeenCalled()
  })

  test('that throws keeps no name of a timer', async () => {
    const { test, outbox } = await testOutbox()
    const arm = (tx: TestTransaction) => outbox.publish(tx, 'reminders', 1, { timerId: 't', delayMs: 1_000 })
    await expect(
      test.transaction(async (tx) => {
        await arm(tx)
        throw new Error('no')
      }),
    ).rejects.toThrow('no')

    expect(await test.transaction(arm)).not.toBeNull()
  })

  test('can be rolled back without an error', async () => {
    const { test, outbox, handler } = await testOutbox()

    await test.transaction(async (tx) => {
      await outbox.publish(tx, 'orders', 1)
      tx.rollback()
    })

    expect(test.published()).toEqual([])
    expect(handler).not.toHaveBeenCalled()
  })

  test('brings a cancelled timer back when it is rolled back', async () => {
    const { test, outbox } = await testOutbox()
    await outbox.publish({} as never, 'reminders', 1, { timerId: 't', delayMs: 1_000 })

    await test.transaction(async (tx) => {
      expect(await outbox.cancelTimer(tx, 'reminders', 't')).toBe(true)
      tx.rollback()
    })
    expect(test.pending('reminders')).toHaveLength(1)
    await test.transaction((tx) => outbox.cancelTimer(tx, 'reminders', 't'))

    expect(test.pending('reminders')).toEqual([])
  })

  test('that has ended is refused', async () => {
    const { test, outbox } = await testOutbox()
    let kept: TestTransaction | undefined
    await test.transaction((tx) => {
      kept = tx
    })

    await expect(outbox.publish(kept!, 'orders', 1)).rejects.toMatchObject({
      code: 'OUTBOX_NOT_IN_TRANSACTION',
    })
  })

  test('of another test outbox is refused', async () => {
    const { test } = await testOutbox()
    const other = await testOutbox()
    const crossed = test.transaction((tx) => other.outbox.publish(tx, 'orders', 1))
    await expect(crossed).rejects.toMatchObject({ code: 'OUTBOX_UNKNOWN_HANDLE' })
    expect(test.published()).toEqual([])
  })

  test('runs no SQL, and says so', async () => {
    const { test } = await testOutbox()
    const failing = test.transaction((tx) => tx.query('insert into orders values (1)', []))
    await expect(failing).rejects.toMatchObject({ code: 'OUTBOX_NO_SQL' })
  })
})

describe('feed', () => {
  test('puts a message into the table that nobody published, for the next drain', async () => {
    const { test, handler } = await testOutbox()

    const receipt = await test.feed('orders', { any: 'thing' }, { headers: { a: 'b' }, key: 'k' })

    expect(test.published()).toEqual([])
    expect(handler).not.toHaveBeenCalled()
    expect(test.pending()).toMatchObject([{ id: receipt?.id, headers: { a: 'b' }, key: 'k' }])
    expect(await test.drain()).toMatchObject({ acked: 1, isEmpty: true })
    expect(handler).toHaveBeenCalledTimes(1)
  })

  test('meets a waiting timer of the same name', async () => {
    const { test } = await testOutbox()
    expect(await test.feed('reminders', 1, { timerId: 't', delayMs: 1_000 })).not.toBeNull()
    expect(await test.feed('reminders', 2, { timerId: 't', delayMs: 1_000 })).toBeNull()
  })

  test.each([{ deliveries: -1 }, { attempts: 0.5 }])('refuses %o', async (options) => {
    const { test } = await testOutbox()
    await expect(test.feed('orders', 1, options)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
    expect(test.pending()).toEqual([])
  })

  test('takes a body that the schema of the queue refuses: the handler does not get it', async () => {
    const { z } = await import('zod')
    const handler = vi.fn()
    const test = await createTestOutbox({ logger: false, queues: { orders: { body: z.number() } } })
    onTestFinished(test.dispose)
    test.outbox.subscribe('orders', handler)

    await test.feed('orders', 'not a number')
    await test.drain()

    expect(handler).not.toHaveBeenCalled()
    expect(test.dead('orders')).toMatchObject([{ reason: 'invalid_body', body: 'not a number' }])
  })
})

describe('a queue that there is not', () => {
  test.each(['published', 'pending', 'dead'] as const)('is refused by %s, not found empty', async (look) => {
    const test = await createTestOutbox({ queues: { orders: {} } })
    onTestFinished(test.dispose)
    expect(() => test[look]('odrers' as 'orders')).toThrow(
      expect.objectContaining({ code: 'OUTBOX_UNKNOWN_QUEUE', message: expect.stringContaining('"orders"') }),
    )
  })
})

describe('advance', () => {
  test('delivers each message when it is due, and its retries when they are', async () => {
    const { test, outbox } = await testOutbox()
    const began = test.now().getTime()
    const runs: [unknown, number][] = []
    const retry = ({ attempt }: { readonly attempt: number }) => attempt * 1_000
    outbox.subscribe(
      'reminders',
      ({ body, attempt }) => {
        runs.push([body, test.now().getTime() - began])
        if (attempt < 3) throw new Error('not yet')
      },
      { retry },
    )

    await test.feed('reminders', 'a', { delayMs: 500 })
    await test.advance(10_000)

    expect(runs).toEqual([
      ['a', 500],
      ['a', 1_500],
      ['a', 3_500],
    ])
    expect(test.now().getTime()).toBe(began + 10_000)
  })

  test.each([-1, 0.5, Number.NaN, '1'])('refuses %s', async (ms) => {
    const { test } = await testOutbox()
    await expect(test.advance(ms as number)).rejects.toMatchObject({ code: 'OUTBOX_INVALID_OPTION' })
  })

  test('stops where a handler runs out of time on the way, so that its retries come in time', async () => {
    const { test, outbox } = await testOutbox()
    const began = test.now().getTime()
    const runs: number[] = []
    const hanging = () => {
      runs.push(test.now().getTime() - began)
      return new Promise(() => {})
    }
    outbox.subscribe('slow', hanging, { timeoutMs: 10_000, retry: () => 5_000 })

    await test.feed('slow', 1)
    await test.advance(40_000)

    expect(runs).toEqual([0, 15_000, 30_000])
  })

  test('does not wait for a handler whose time is not over', async () => {
    const { test, outbox } = await testOutbox()
    outbox.subscribe('slow', () => new Promise(() => {}), { timeoutMs: 1_000, retry: () => null })

    await test.feed('slow', 1)
    await test.advance(999)
    expect(test.pending('slow')).toMatchObject([{ inFlight: true }])
    await test.advance(1)

    expect(test.dead('slow')).toMatchObject([{ reason: 'retry_terminal' }])
  })

  test('ends a handler that is out of time, though publish waits for it', async () => {
    const { test, outbox } = await testOutbox()
    outbox.subscribe('slow', () => new Promise(() => {}), { timeoutMs: 1_000, retry: () => null })

    const publishing = outbox.publish({} as never, 'slow', 1)
    await test.advance(1_000)
    await publishing

    expect(test.dead('slow')).toMatchObject([{ reason: 'retry_terminal' }])
  })
})

describe('a transaction that the outbox itself opens', () => {
  test('is given as one of the test kit, which is of this test outbox and open until it ends', async () => {
    const store = createTestStore({ clock: createTestClock(0), deliver: async () => {}, arrived: () => {} })
    const states: unknown[] = []

    const handle = await store.database().transaction(async (_, own) => {
      states.push(testHandle(own, store.database).transactionState())
      return own
    })
    states.push(testHandle(handle, store.database).transactionState())

    expect(states).toEqual([{ inside: true }, { inside: false, because: 'ended' }])
    expect(testHandle(handle, store.database).client).toBe('test')
    await expect((handle as TestTransaction).query('select 1', [])).rejects.toMatchObject({
      code: 'OUTBOX_NO_SQL',
    })
  })
})
