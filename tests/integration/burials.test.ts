import { createOutbox, type Handler, noRetry, type OutboxOptions } from 'postbox'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import { useBench } from '../support/decisions-bench.ts'
import { type FakeClock, fakeClock, loopsSleep } from '../support/fake-clock.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { eventually } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

/** Time flies: what is asked of the clock is told by the events. */
const hasty = {
  [Symbol.for('postbox.internals')]: {
    clock: {
      ...systemClock,
      sleep: (ms: number, signal: AbortSignal) => systemClock.sleep(Math.min(ms, 20), signal),
    },
  },
}

const poison = (): never => {
  throw new Error('poison')
}

/** Publishes poison beside good messages, with dead letters that take nothing until they are mended. */
async function withBrokenDeadLetters(
  breakage: string,
  mend: string,
  work: () => Promise<void>,
): Promise<void> {
  await database.query(breakage)
  try {
    await work()
  } finally {
    await database.query(mend)
  }
}

const breakages = [
  [
    'a constraint refuses it',
    'alter table outbox_dead add constraint never check (false) not valid',
    'alter table outbox_dead drop constraint never',
  ],
  [
    'the table is missing',
    'alter table outbox_dead rename to outbox_gone',
    'alter table outbox_gone rename to outbox_dead',
  ],
  [
    'a column is missing',
    'alter table outbox_dead rename column last_error to gone',
    'alter table outbox_dead rename column gone to last_error',
  ],
] as const

/** Publishers notify it: who published while it lay down would be found by its next look, for which nobody moves the clock. */
const liesStill = (clock: FakeClock): Promise<unknown> =>
  eventually(() => loopsSleep(clock), { what: 'the outbox to sleep' })

describe('a burial that cannot be written, because', () => {
  test.for(breakages)(
    '%s: the row stays, is quarantined and told, its handler is not run again, and its neighbours go on',
    async ([, breakage, mend]) => {
      let poisonRuns = 0
      const clock = fakeClock()
      const outbox = outboxOf({ [Symbol.for('postbox.internals')]: { clock } } as OutboxOptions)
      outbox.subscribe(
        'orders',
        ({ body }) => {
          if (body !== 'poison') return
          poisonRuns++
          poison()
        },
        { retry: noRetry(), name: 'ship' },
      )
      await withBrokenDeadLetters(breakage, mend, async () => {
        await using _running = await outbox.start()
        await liesStill(clock)
        await outbox.publishNow('orders', 'poison')
        await outbox.told.first('settle_failed')
        // Its burial is still tried; nobody waits for that.
        const good = Array.from({ length: 30 }, (_, n) => n)
        await inTransaction(bench.pool(), (tx) => outbox.publishMany(tx, 'orders', good))
        await outbox.told.take('acked', 30)
        expect(outbox.told.of('dead')).toEqual([])
        clock.advance(1_000)
        await outbox.told.take('settle_failed', 2)
        clock.advance(2_000)
        await outbox.told.take('settle_failed', 3)
        clock.advance(0)
        await outbox.told.first('dlq_written')
      })

      expect(poisonRuns).toBe(1)
      expect(outbox.told.of('settle_failed')).toMatchObject([
        { write: 'bury', queue: 'orders', handler: 'ship', delayMs: 1_000, messages: 1 },
        { write: 'bury', queue: 'orders', delayMs: 2_000 },
        { write: 'bury', queue: 'orders', delayMs: 0 },
      ])
      expect(outbox.told.of('breaker_opened')).toEqual([])
      expect(outbox.told.of('dead')).toMatchObject([
        { reason: 'retry_terminal', error: { message: 'poison' } },
      ])
      expect(outbox.told.of('dlq_written')).toMatchObject([{ isQuarantined: true }])
      expect(await messages()).toMatchObject([
        {
          attempts: 1,
          failure_reason: 'retry_terminal',
          last_error: 'Error: poison',
          lease_token: null,
          failed_at: expect.any(Date),
        },
      ])
      expect(await dead()).toEqual([])
    },
  )

  test('is no longer so when it is tried again, leaves no trace', async () => {
    const clock = fakeClock()
    const outbox = outboxOf({ [Symbol.for('postbox.internals')]: { clock } } as OutboxOptions)
    outbox.subscribe('orders', poison, { retry: noRetry() })
    const [, breakage, mend] = breakages[0]
    await using _running = await outbox.start()
    await liesStill(clock)
    await withBrokenDeadLetters(breakage, mend, async () => {
      await outbox.publishNow('orders', 'poison')
      await outbox.told.first('settle_failed')
    })
    clock.advance(1_000)
    const written = await outbox.told.first('dlq_written')

    expect(written).toMatchObject({ isQuarantined: false })
    expect(await dead()).toMatchObject([{ failure_reason: 'retry_terminal' }])
    expect(await messages()).toEqual([])
  })
})

test('a quarantined message is listed among the dead letters, and can be replayed from there', async () => {
  const [, breakage, mend] = breakages[0]
  const outbox = outboxOf(hasty as OutboxOptions)
  let isMended = false
  outbox.subscribe('orders', () => isMended || poison(), { retry: noRetry() })
  await using _running = await outbox.start()
  await withBrokenDeadLetters(breakage, mend, async () => {
    await outbox.publishNow('orders', 'poison')
    await outbox.told.first('dlq_written')
  })
  const { items } = await outbox.deadLetters.list()
  isMended = true
  const answer = await outbox.deadLetters.replay(items[0]?.id ?? '', { by: 'test' })
  await outbox.told.first('acked')

  expect(items).toMatchObject([
    { body: 'poison', reason: 'retry_terminal', error: 'Error: poison', isQuarantined: true },
  ])
  expect(answer).toEqual({ replayed: true, lands: 'anywhere' })
  expect(await messages()).toEqual([])
})

describe('five hundred messages', () => {
  const five = Array.from({ length: 500 }, (_, n) => n)

  /** Everything that its claims brought is decided together. */
  async function settleTogether(decide: Handler) {
    const pool = database.pool({ max: 5 })
    const statements = watchStatements(pool, database.schema)
    const outbox = createOutbox({ database: pool, schema: database.schema, logger: false })
    let waiting: (() => void)[] = []
    outbox.subscribe(
      'orders',
      async (message, context) => {
        await new Promise<void>((resolve) => {
          waiting.push(resolve)
          if (waiting.length === five.length) for (const go of waiting.splice(0)) go()
        })
        return decide(message, context)
      },
      { concurrency: five.length, retry: noRetry() },
    )
    await inTransaction(pool, (tx) => outbox.publishMany(tx, 'orders', five))
    const drained = await outbox.drain()
    waiting = []
    await pool.end()
    return { drained, counts: statements.counts() }
  }

  test('that are snoozed are one statement', async () => {
    const { drained, counts } = await settleTogether((_, { snooze }) => snooze(3_600_000))
    expect(drained).toMatchObject({ snoozed: 500 })
    expect(counts).toMatchObject({ snooze_messages: 1 })
  })

  test('that are dead are one statement', async () => {
    const { drained, counts } = await settleTogether(poison)
    expect(drained).toMatchObject({ dead: 500 })
    expect(counts).toMatchObject({ bury_dead: 1 })
    expect(await dead()).toHaveLength(500)
  })

  test('that publish are one statement', async () => {
    const { drained, counts } = await settleTogether((_, { publish }) => publish('emails', 1))
    expect(drained).toMatchObject({ acked: 500 })
    expect(counts).toMatchObject({ delete_with_follow_ons: 1 })
    expect(await messages()).toHaveLength(500)
  })
})
