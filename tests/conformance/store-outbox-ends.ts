import { type Context, type Message, noRetry } from 'postbox'
import { describe, expect, test } from 'vitest'
import { countDelivery } from '../../packages/postbox/src/sql/count-delivery.ts'
import { collector, signal } from '../support/signals.ts'
import { minute, type StoreBench } from './store-bench.ts'
import { hour, outboxBench } from './store-outbox-bench.ts'

/** What becomes of messages that an outbox has delivered, on every store. */
export function describeEnds(bench: StoreBench): void {
  const { open, inTransaction } = outboxBench(bench)

  test('a message that failed is put back by its policy, with its error, and run again', async () => {
    const { outbox, of } = open()
    const runs = collector<readonly number[]>('runs')
    outbox.subscribe('orders', ({ attempt, deliveries }) => {
      runs.add([attempt, deliveries])
      if (attempt < 3) throw new TypeError(`bad ${attempt}`)
    })
    await outbox.publishNow('orders', 1)
    await outbox.start()
    await of('retried')
    const waiting = await bench.rows()
    await bench.store.advance(2 * hour)
    await of('retried', 2)
    await bench.store.advance(2 * hour)
    await of('acked')

    expect(waiting).toMatchObject([
      { attempts: 1, deliveries: 1, leaseToken: null, dueAt: 60, lastError: 'TypeError: bad 1' },
    ])
    expect(runs.all).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ])
    expect(await bench.rows()).toEqual([])
  })

  describe.each(['delete', 'table'] as const)(
    'a message whose handler works in a transaction (%s)',
    (delivered) => {
      test('ends with its commit, and what it published is there', async () => {
        const { outbox, of } = open({ delivered })
        outbox.subscribe('orders', (_, { transaction, publish }) =>
          transaction(async (tx) => {
            void publish('mails', 'by the context')
            await outbox.publish(tx as never, 'mails', 'by the handle')
          }),
        )
        await outbox.publishNow('orders', 1)
        await outbox.start()
        await of('acked')

        expect((await bench.rows()).map(({ queue }) => queue)).toEqual(['mails', 'mails'])
        expect((await outbox.delivered.list()).items).toHaveLength(delivered === 'table' ? 1 : 0)
      })

      test('is put back when it fails, and nothing else is there', async () => {
        const { outbox, of } = open({ delivered })
        outbox.subscribe('orders', (_, { transaction, publish }) =>
          transaction(async (tx) => {
            void publish('mails', 'by the context')
            await outbox.publish(tx as never, 'mails', 'by the handle')
            throw new Error('no')
          }),
        )
        await outbox.publishNow('orders', 1)
        await outbox.start()
        await of('retried')

        expect(await bench.rows()).toMatchObject([{ queue: 'orders', attempts: 1, lastError: 'Error: no' }])
        expect((await outbox.delivered.list()).items).toEqual([])
      })
    },
  )

  describe.each(['table', 'in-place'] as const)('a message that is given up, and kept: %s', (deadLetters) => {
    test('is among the dead letters, and delivered anew when it is replayed', async () => {
      const { outbox, of, kinds } = open({ deadLetters })
      let isMended = false
      const got = collector<Message>('messages')
      const work = (message: Message): void => {
        if (!isMended) throw new Error('bäd')
        got.add(message)
      }
      outbox.subscribe('orders', work, { retry: noRetry() })
      const receipt = await outbox.publishNow('orders', { n: 1 }, { timerId: 't', key: 'k' })
      await outbox.start()
      await of('dead')
      const { items } = await outbox.deadLetters.list({ queue: 'orders', search: 'bäd' })
      const before = [await outbox.deadLetters.count(), await outbox.deadLetters.get(receipt!.id)]
      isMended = true
      const replayed = await outbox.deadLetters.replay(receipt!.id, { by: 'jo', generation: 3 })
      await of('acked')

      expect(items).toMatchObject([
        {
          id: receipt!.id,
          body: { n: 1 },
          timerId: 't',
          key: 'k',
          reason: 'retry_terminal',
          error: 'Error: bäd',
          attempts: 1,
          isQuarantined: false,
        },
      ])
      expect(kinds().filter((kind) => kind === 'dead' || kind === 'dlq_written')).toEqual([
        'dead',
        'dlq_written',
      ])
      expect(before).toMatchObject([{ count: 1, atLeast: false }, items[0]!])
      expect(replayed).toEqual({ replayed: true, lands: 'anywhere' })
      expect(got.all).toMatchObject([
        { id: receipt!.id, attempt: 1, deliveries: 1, generation: 3, body: { n: 1 } },
      ])
      expect(await outbox.deadLetters.replay(receipt!.id, { by: 'jo' })).toEqual({
        replayed: false,
        because: 'not_found',
      })
      expect(await bench.store.snapshot()).toMatchObject({ messages: [], dead: [] })
    })

    test('lies where it is kept, is not pending, and gives its name to the next timer', async () => {
      const { outbox, of } = open({ deadLetters })
      outbox.subscribe('orders', (_, context) => context.reject('no'))
      const { id } = (await outbox.publishNow('orders', 1, { timerId: 't' }))!
      await outbox.start()
      await of('dead')
      await outbox.stop()
      const pending = await inTransaction((tx) => outbox.pending(tx))
      const again = await outbox.publishNow('orders', 2, { timerId: 't', delayMs: hour })

      const { messages, dead } = await bench.store.snapshot()
      expect(dead.map((row) => row.id)).toEqual(deadLetters === 'table' ? [id] : [])
      expect(messages.map((row) => row.id)).toEqual(deadLetters === 'table' ? [again!.id] : [id, again!.id])
      expect(pending).toEqual([])
      expect(await outbox.stats()).toMatchObject({ orders: { ready: { count: 0 }, scheduled: { count: 1 } } })
      expect(await outbox.deadLetters.replay(id, { by: 'jo' })).toEqual({
        replayed: false,
        because: 'timer_conflict',
      })
    })

    test('was delivered too often without an outcome: it is not run again', async () => {
      const { outbox, of, kinds } = open({ deadLetters })
      outbox.subscribe('orders', () => {}, { maxDeliveries: 2 })
      await bench.publish()
      for (let deaths = 0; deaths < 2; deaths++) {
        const [lease] = (await bench.claim()).fences
        await bench.run(countDelivery(bench.names, { ...lease!, deliveries: deaths + 1 }))
        await bench.store.advance(2 * minute)
      }
      await outbox.start()
      await of('dead')

      expect(kinds()).not.toContain('dispatched')
      expect((await outbox.deadLetters.list()).items).toMatchObject([
        { reason: 'max_deliveries', attempts: 0, deliveries: 2, isQuarantined: false },
      ])
    })
  })

  test.each([
    ['table', 'in-place'],
    ['in-place', 'table'],
  ] as const)(
    'dead letters that are kept otherwise from now on (%s, then %s) are all listed, counted, got and replayed',
    async (before, after) => {
      const ids: string[] = []
      for (const deadLetters of [before, after]) {
        const { outbox, of } = open({ deadLetters })
        outbox.subscribe('orders', (_, context) => context.reject('no'))
        await outbox.start()
        ids.unshift((await outbox.publishNow('orders', deadLetters, { key: deadLetters })).id)
        await of('dead')
        await outbox.stop()
      }
      const { outbox, of } = open({ deadLetters: after })
      const { items } = await outbox.deadLetters.list()

      expect(items.map(({ id }) => id)).toEqual(ids)
      // Who keeps them in a table may want to know of those that are not there.
      expect(items.map(({ isQuarantined }) => isQuarantined)).toEqual([false, after === 'table'])
      expect(await outbox.deadLetters.count()).toEqual({ count: 2, atLeast: false })
      outbox.subscribe('orders', () => {})
      await outbox.start()
      for (const id of ids) {
        expect(await outbox.deadLetters.get(id)).toMatchObject({ id })
        expect(await outbox.deadLetters.replay(id, { by: 'jo' })).toEqual({
          replayed: true,
          lands: 'anywhere',
        })
      }
      await of('acked', 2)
      expect(await bench.store.snapshot()).toMatchObject({ messages: [], dead: [] })
    },
  )

  describe('a message that is given up', () => {
    test('is deleted, where dead letters are discarded', async () => {
      const { outbox, of } = open({ deadLetters: 'discard' })
      outbox.subscribe('orders', (_, context) => context.reject('no'))
      await outbox.publishNow('orders', 1)
      await outbox.start()
      await of('dead')

      expect(await bench.store.snapshot()).toMatchObject({ messages: [], dead: [] })
    })
  })

  test('the message of a process that died is delivered when its lease has ended', async () => {
    const { outbox, of } = open()
    const got = collector<readonly unknown[]>('deliveries')
    outbox.subscribe('orders', ({ attempt, deliveries }) => got.add([attempt, deliveries]))
    await bench.publish({ timerId: 't' })
    await bench.claim()
    await outbox.start()
    await outbox.publishNow('orders', 'marker')
    await of('acked')
    const before = [...got.all]
    await bench.store.advance(2 * minute)
    await of('acked', 2)

    expect([before, got.all]).toEqual([
      [[1, 1]],
      [
        [1, 1],
        [1, 2],
      ],
    ])
  })

  test('what handlers decide is written: retried, snoozed, rejected, and followed by other messages', async () => {
    const { outbox, of } = open()
    const work = async ({ body }: Message, context: Context): Promise<void> => {
      if (body === 'retry') context.retry({ afterMs: 2 * hour, error: new Error('later') })
      if (body === 'snooze') context.snooze(3 * hour)
      if (body === 'reject') context.reject('no')
      if (body === 'follow') {
        await context.publish('mails', 'now')
        await context.publish('mails', 'timer', { timerId: 'mail', delayMs: hour })
      }
    }
    outbox.subscribe('orders', work)
    for (const body of ['retry', 'snooze', 'reject', 'follow'])
      await outbox.publishNow('orders', body, { timerId: body })
    await outbox.start()
    await Promise.all([of('retried'), of('snoozed'), of('dead'), of('acked')])

    expect(await bench.rows()).toMatchObject([
      {
        timerId: 'retry',
        attempts: 1,
        deliveries: 1,
        dueAt: 120,
        lastError: 'Error: later',
        leaseToken: null,
      },
      { timerId: 'snooze', attempts: 0, deliveries: 0, dueAt: 180, lastError: null, leaseToken: null },
      { queue: 'mails', timerId: null, dueAt: null },
      { queue: 'mails', timerId: 'mail', dueAt: 60 },
    ])
    expect(await bench.dead()).toMatchObject([
      { timerId: 'reject', failureReason: 'rejected', lastError: 'no' },
    ])
  })

  test('follow-ons are delivered, and a timer that arms itself comes again', async () => {
    const { outbox, of } = open()
    const got = collector<string>('bodies')
    outbox.subscribe('orders', async ({ body }, context) => {
      got.add(String(body))
      await context.publish('orders', `${body}+`, { timerId: 'daily', delayMs: hour })
      await context.publish('mails', `mail of ${body}`)
    })
    outbox.subscribe('mails', ({ body }) => got.add(String(body)))
    await outbox.publishNow('orders', 'tick', { timerId: 'daily' })
    await outbox.start()
    await of('acked', 2)
    await bench.store.advance(2 * hour)
    await of('acked', 4)

    expect(got.all).toEqual(['tick', 'mail of tick', 'tick+', 'mail of tick+'])
    expect(await bench.rows()).toMatchObject([{ timerId: 'daily', dueAt: 60 }])
  })

  test('a batch is one run for many messages, each with an end of its own', async () => {
    const { outbox, of } = open()
    const sizes = collector<number>('batches')
    outbox.subscribeBatch(
      'orders',
      (messages, context) => {
        sizes.add(messages.length)
        for (const message of messages) if (message.body === 2) context.snooze(message, hour)
      },
      { size: 3, maxWaitMs: 60_000 },
    )
    await inTransaction((tx) => outbox.publishMany(tx, 'orders', [1, 2, 3]))
    await outbox.start()
    await Promise.all([of('acked', 2), of('snoozed')])

    expect(sizes.all).toEqual([3])
    expect(await bench.rows()).toMatchObject([{ seq: '2', dueAt: 60, deliveries: 0 }])
  })

  test('a stop lets the handler that runs finish, and gives back what was not started', async () => {
    const { outbox, of } = open()
    const [started, go] = [signal('the handler to start'), signal('leave to finish')]
    const work = async (): Promise<void> => {
      started.send()
      await go.wait()
    }
    outbox.subscribe('orders', work, { concurrency: 1, prefetch: 3 })
    for (let count = 0; count < 5; count++) await outbox.publishNow('orders', count)
    await outbox.start()
    await started.wait()

    const stopped = outbox.stop()
    go.send()
    await stopped
    await of('acked')

    const given = { attempts: 0, deliveries: 0, leaseToken: null, dueAt: null }
    expect(await bench.rows()).toMatchObject([given, given, given, given])
    expect((await bench.rows()).map(({ seq }) => seq)).toEqual(['2', '3', '4', '5'])
  })

  test('a drain delivers all that is ready, what follows from it included, and tells what became of it', async () => {
    const { outbox } = open()
    outbox.subscribe('orders', async ({ body }, context) => {
      if (body === 'bad') throw new Error('bad')
      if (body === 'first') await context.publish('orders', 'second')
    })
    for (const body of ['first', 'bad', 'good']) await outbox.publishNow('orders', body)
    await outbox.publishNow('orders', 'later', { delayMs: hour })

    const drained = await outbox.drain()

    expect(drained).toEqual({ acked: 3, retried: 1, snoozed: 0, dead: 0, lost: 0, isEmpty: true })
    expect(await bench.rows()).toMatchObject([
      { seq: '2', attempts: 1 },
      { seq: '4', dueAt: 60 },
    ])
  })
}
