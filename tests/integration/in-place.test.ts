// Dead letters that stay where they are: `deadLetters: 'in-place'`.
import { type Handler, noRetry, type OutboxOptions } from 'postbox'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

const inPlace = { deadLetters: 'in-place' } as const

/** Time flies: what is asked of the clock is told by the events. */
const hasty = {
  [Symbol.for('postbox.internals')]: {
    clock: {
      ...systemClock,
      sleep: (ms: number, signal: AbortSignal) => systemClock.sleep(Math.min(ms, 20), signal),
    },
  },
}

describe('a message that is given up', () => {
  test('stays where it is, with everything it had, due never, leased by nobody, and without the name of its timer', async () => {
    const outbox = outboxOf(inPlace)
    outbox.subscribe('orders', () => Promise.reject(new Error('no')), { retry: noRetry() })
    const options = { key: 'k', timerId: 't', headers: { a: 'b' } }
    const { id, seq } = (await outbox.publishNow('orders', { n: 1 }, options))!
    await outbox.drain()

    expect(await messages()).toMatchObject([
      {
        ...{ id, seq, queue: 'orders', key: 'k', timer_id: null, fired_timer_id: 't', headers: { a: 'b' } },
        ...{ attempts: 1, deliveries: 1, due_at: Number.POSITIVE_INFINITY, lease_token: null },
        ...{ failure_reason: 'retry_terminal', last_error: 'Error: no', failed_at: expect.any(Date) },
      },
    ])
    expect(await dead()).toEqual([])
  })

  test('is marked by one statement for five hundred, which needs no dead letters', async () => {
    const pool = database.pool({ max: 5 })
    const statements = watchStatements(pool, database.schema)
    const outbox = outboxOf({ ...inPlace, database: pool })
    const many = Array.from({ length: 500 }, (_, n) => n)
    const waiting: (() => void)[] = []
    const together = (): Promise<void> =>
      new Promise((resolve) => {
        waiting.push(resolve)
        if (waiting.length === many.length) for (const go of waiting) go()
      })
    const reject: Handler = async (_, context) => {
      await together()
      context.reject('no')
    }
    outbox.subscribe('orders', reject, { concurrency: many.length })
    await inTransaction(pool, (tx) => outbox.publishMany(tx, 'orders', many))
    await database.query('alter table outbox_dead rename to outbox_gone')
    const drained = await outbox.drain()
    await database.query('alter table outbox_gone rename to outbox_dead')
    await pool.end()

    expect(drained).toMatchObject({ dead: 500 })
    expect(statements.counts()).toMatchObject({ quarantine_dead: 1 })
    expect(statements.named('find_buried')).toEqual([])
  })

  test('is claimed by nobody, however often one looks, and by the next look once it is replayed', async () => {
    const outbox = outboxOf(inPlace)
    let isMended = false
    outbox.subscribe('orders', (_, context) => (isMended ? undefined : context.reject('no')))
    const { id } = await outbox.publishNow('orders', 1)
    const first = await outbox.drain()
    const second = await outbox.drain()
    isMended = true
    const replayed = await outbox.deadLetters.replay(id, { by: 'me' })
    const third = await outbox.drain()

    expect([first, second, third]).toMatchObject([{ dead: 1 }, { dead: 0, acked: 0 }, { acked: 1 }])
    expect(replayed).toEqual({ replayed: true, lands: 'anywhere' })
    expect(await messages()).toEqual([])
  })
})

test('a burial that a constraint of the table refuses is tried again, told each time, and written when it is mended; its handler is run once', async () => {
  const outbox = outboxOf({ ...(hasty as OutboxOptions), ...inPlace })
  let poisonRuns = 0
  const work = ({ body }: { readonly body: unknown }): void => {
    if (body !== 'poison') return
    poisonRuns++
    throw new Error('poison')
  }
  outbox.subscribe('orders', work, { retry: noRetry(), name: 'ship' })
  await database.query('alter table outbox add constraint never check (failed_at is null) not valid')
  await using _running = await outbox.start()
  await outbox.publishNow('orders', 'poison')
  await outbox.told.take('settle_failed', 5)
  // Nobody waits for it.
  await outbox.publishNow('orders', 'good')
  await outbox.told.first('acked')
  const during = [await messages(), outbox.told.of('dead')]
  await database.query('alter table outbox drop constraint never')
  await outbox.told.first('dead')

  expect(during).toMatchObject([[{ lease_token: expect.any(String), failed_at: null }], []])
  expect(outbox.told.of('settle_failed').slice(0, 5)).toMatchObject(
    [1_000, 2_000, 4_000, 8_000, 16_000].map((delayMs) => ({ write: 'bury', handler: 'ship', delayMs })),
  )
  expect(await outbox.deadLetters.list()).toMatchObject({ items: [{ body: 'poison', isQuarantined: false }] })
  expect([poisonRuns, outbox.told.of('dead').length, outbox.told.of('breaker_opened')]).toEqual([1, 1, []])
})
