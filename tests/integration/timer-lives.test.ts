// Timers from their arming to their end, by the outbox as it is used. The statements by themselves are in timer-names.test.ts.
import { constant, type Message } from 'postbox'
import { describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, signal } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench

const databaseNow = async (): Promise<number> => {
  const [row] = await database.query<{ now: Date }>('select clock_timestamp() as now')
  return row!.now.getTime()
}

// I-14
describe('a message for later', () => {
  test.for([
    ['by a delay', (_now: number) => ({ delayMs: 300 })],
    ['by a time', (now: number) => ({ at: new Date(now + 300) })],
  ] as const)(
    '%s is delivered when its time has come, by the database’s clock, and not before',
    async ([, due]) => {
      const outbox = outboxOf()
      const got = signal<number>('the message')
      outbox.subscribe('orders', async () => got.send(await databaseNow()))
      const now = await databaseNow()
      await outbox.publishNow('orders', 1, due(now))
      await using _running = await outbox.start()

      expect(await got.wait()).toBeGreaterThanOrEqual(now + 300)
      await outbox.told.first('acked')
    },
  )

  test('is one of a batch that waits, and drain does not take it', async () => {
    const outbox = outboxOf()
    outbox.subscribe('orders', () => expect.unreachable())
    const hour = { delayMs: 3_600_000 }
    await inTransaction(bench.pool(), (tx) => outbox.publishMany(tx, 'orders', [1, 2, 3], hour))

    expect(await outbox.drain()).toMatchObject({ acked: 0, isEmpty: true })
    expect(await messages()).toHaveLength(3)
  })
})

// I-15
describe('timers of one name', () => {
  test('are one while it waits, in each queue', async () => {
    const outbox = outboxOf()
    const got = collector<string>('messages')
    outbox.subscribe(['orders', 'emails'], ({ queue, body }) => got.add(`${queue} ${body}`))
    const soon = { timerId: 't', delayMs: 100 }
    const receipts = [
      await outbox.publishNow('orders', 'first', soon),
      await outbox.publishNow('orders', 'second', soon),
      await outbox.publishNow('emails', 'third', soon),
    ]
    await using _running = await outbox.start()
    await outbox.told.take('acked', 2)

    expect(receipts.map((receipt) => receipt !== null)).toEqual([true, false, true])
    expect([...got.all].sort()).toEqual(['emails third', 'orders first'])
    expect(await messages()).toEqual([])
  })

  test('are the last, when it replaces', async () => {
    const outbox = outboxOf()
    const got = collector<Message>('messages')
    outbox.subscribe('orders', got.add)
    await outbox.publishNow('orders', 'first', { timerId: 't', delayMs: 3_600_000 })
    const second = await outbox.publishNow('orders', 'second', {
      timerId: 't',
      delayMs: 1,
      onConflict: 'replace',
    })
    await using _running = await outbox.start()
    await outbox.told.first('acked')

    expect(got.all).toMatchObject([{ body: 'second', id: second?.id }])
    expect(await messages()).toEqual([])
  })

  test('that are cancelled before they fire do not fire; cancelled by whoever rolls back, they do', async () => {
    const outbox = outboxOf()
    const got = collector<unknown>('messages')
    outbox.subscribe('orders', ({ body }) => got.add(body))
    for (const name of ['a', 'b']) await outbox.publishNow('orders', name, { timerId: name, delayMs: 50 })
    const answers: boolean[] = []
    await inTransaction(bench.pool(), async (tx) => {
      answers.push(
        await outbox.cancelTimer(tx, 'orders', 'a'),
        await outbox.cancelTimer(tx, 'orders', 'nobody'),
      )
    })
    const rolledBack = inTransaction(bench.pool(), async (tx) => {
      answers.push(await outbox.cancelTimer(tx, 'orders', 'b'))
      throw new Error('roll back')
    })
    await expect(rolledBack).rejects.toThrow('roll back')
    await using _running = await outbox.start()
    await outbox.told.first('acked')

    expect(answers).toEqual([true, false, true])
    expect(got.all).toEqual(['b'])
    expect(await messages()).toEqual([])
  })

  test('while one runs: it cannot be cancelled and completes, and another can be armed', async () => {
    const outbox = outboxOf()
    const started = signal('the handler starts')
    const go = signal('leave to finish')
    const got = collector<unknown>('messages')
    outbox.subscribe('orders', async ({ body }) => {
      got.add(body)
      started.send()
      await go.wait()
    })
    await outbox.publishNow('orders', 'first', { timerId: 't', delayMs: 1 })
    await using _running = await outbox.start()
    await started.wait()
    const inFlight: unknown[] = []
    await inTransaction(bench.pool(), async (tx) => {
      inFlight.push(await outbox.cancelTimer(tx, 'orders', 't'))
      inFlight.push(await outbox.publish(tx, 'orders', 'second', { timerId: 't', delayMs: 1 }))
    })
    go.send()
    await outbox.told.take('acked', 2)

    expect(inFlight).toEqual([false, { id: expect.any(String), seq: expect.any(String) }])
    expect(got.all).toEqual(['first', 'second'])
  })
})

describe('a timer that failed and waits for its retry', () => {
  const hour = constant({ delayMs: 3_600_000 })
  const failOnce = async () => {
    const outbox = outboxOf()
    outbox.subscribe('orders', () => Promise.reject(new Error('not yet')), { retry: hour })
    await outbox.publishNow('orders', 'reminder', { timerId: 't', delayMs: 1 })
    const running = await outbox.start()
    await outbox.told.first('retried')
    await running.stop()
    return outbox
  }

  test('can be cancelled: a reminder that could not be sent need not be sent any more', async () => {
    const outbox = await failOnce()
    const answers: boolean[] = []
    await inTransaction(bench.pool(), async (tx) => {
      answers.push(await outbox.cancelTimer(tx, 'orders', 't'))
    })

    expect(answers).toEqual([true])
    expect(await messages()).toEqual([])
  })

  test('is not armed twice', async () => {
    const outbox = await failOnce()

    expect(await outbox.publishNow('orders', 'again', { timerId: 't' })).toBeNull()
  })

  test('goes on without its name when that was taken while it ran, and both are delivered', async () => {
    const outbox = outboxOf()
    const got = collector<string>('runs')
    outbox.subscribe(
      'orders',
      async ({ body, attempt }) => {
        got.add(`${body} ${attempt}`)
        if (attempt > 1 || body !== 'first') return
        await outbox.publishNow('orders', 'second', { timerId: 't', delayMs: 20 })
        throw new Error('after it had armed the next')
      },
      { retry: constant({ delayMs: 5 }) },
    )
    await outbox.publishNow('orders', 'first', { timerId: 't', delayMs: 1 })
    await using _running = await outbox.start()
    await outbox.told.take('acked', 2)

    expect([...got.all].sort()).toEqual(['first 1', 'first 2', 'second 1'])
    expect(await messages()).toEqual([])
  })

  test('does not wait for somebody who is arming its name: the retry is written without it', async () => {
    const outbox = outboxOf()
    const started = signal('the handler starts')
    const go = signal('leave to fail')
    const work = async (): Promise<void> => {
      started.send()
      await go.wait()
      throw new Error('not yet')
    }
    outbox.subscribe('orders', work, { retry: hour })
    await outbox.publishNow('orders', 'first', { timerId: 't', delayMs: 1 })
    await using _running = await outbox.start()
    await started.wait()
    const stranger = await database.client()
    await stranger.query('begin')
    await outbox.publish(stranger, 'orders', 'second', { timerId: 't', delayMs: 3_600_000 })
    go.send()
    // With the stranger's transaction open.
    await outbox.told.first('retried')
    await stranger.query('commit')
    await stranger.end()

    expect(outbox.told.of('breaker_opened')).toEqual([])
    expect((await messages()).map((row) => [row['attempts'], row['timer_id']])).toEqual([
      [1, null],
      [0, 't'],
    ])
  })
})

test('five thousand timers that are due at once are claimed together, and each fires once', async () => {
  const pool = database.pool({ max: 5 })
  const statements = watchStatements(pool, database.schema)
  const outbox = outboxOf({ database: pool })
  const fired = new Map<unknown, number>()
  outbox.subscribe('orders', ({ body }) => void fired.set(body, (fired.get(body) ?? 0) + 1), {
    concurrency: 100,
  })
  const names = Array.from({ length: 5_000 }, (_, n) => n)
  const at = new Date((await databaseNow()) + 200)
  await inTransaction(pool, (tx) =>
    outbox.publishMany(tx, 'orders', names, (name) => ({ timerId: `t-${name}`, at })),
  )
  const running = await outbox.start()
  await outbox.told.take('acked', 5_000)
  await running.stop()
  await pool.end()

  expect(fired.size).toBe(5_000)
  expect(new Set(fired.values())).toEqual(new Set([1]))
  expect(statements.named('claim_messages').length).toBeLessThan(250)
})
