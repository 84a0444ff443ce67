// What must not be lost, stopped or told twice when other things go wrong.
import { constant, createOutbox, type LogEntry, noRetry, type OutboxOptions } from 'postbox'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { FailpointName } from '../../packages/postbox/src/runtime/failpoint.ts'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

const hour = constant({ delayMs: 3_600_000 })
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)
const inside = (internals: object): OutboxOptions =>
  ({ [Symbol.for('postbox.internals')]: internals }) as never

describe('a consume middleware that does not wait for `next`', () => {
  test.for([
    ['and returns', (next: () => Promise<void>): unknown => void next()],
    [
      'and goes on with what it makes of it',
      (next: () => Promise<void>): unknown => void next().then(() => {}),
    ],
  ] as const)('%s does not acknowledge what its handler fails at', async ([, work]) => {
    const outbox = outboxOf({ middleware: [{ consume: (_, next) => work(next) }] })
    outbox.subscribe('orders', () => Promise.reject(new Error('no')), { retry: hour })
    await outbox.publishNow('orders', 1)
    await outbox.drain()

    expect(outbox.told.of('acked')).toEqual([])
    expect(await messages()).toMatchObject([{ attempts: 1, last_error: 'Error: no' }])
  })
})

describe('somebody’s open transaction that arms the names of many timers', () => {
  test('holds nobody up while these are retried', async () => {
    const outbox = outboxOf()
    const count = 64
    const started = collector<unknown>('handlers')
    const go = signal('leave to fail')
    const work = async ({ body }: { readonly body: unknown }): Promise<void> => {
      started.add(body)
      await go.wait()
      throw new Error('not yet')
    }
    outbox.subscribe('orders', work, { retry: hour, concurrency: count })
    outbox.subscribe('emails', () => {})
    const timers = { delayMs: 1 }
    await inTransaction(bench.pool(), (tx) =>
      outbox.publishMany(tx, 'orders', upTo(count), (n) => ({ timerId: `t-${n}`, ...timers })),
    )
    await using _running = await outbox.start()
    await started.take(count)
    const stranger = await database.client()
    await stranger.query('begin')
    await outbox.publishMany(stranger, 'orders', upTo(count), (n) => ({
      timerId: `t-${n}`,
      delayMs: 3_600_000,
    }))
    go.send()
    await outbox.publishNow('emails', 1)
    // All of this while the stranger's transaction is open.
    await outbox.told.take('retried', count)
    await outbox.told.first('acked')
    await stranger.query('commit')
    await stranger.end()

    expect(outbox.told.of('breaker_opened')).toEqual([])
    expect(await messages()).toHaveLength(2 * count)
  })
})

test('a login that is refused for a while loses no acknowledgement', async () => {
  const role = `worker_${Date.now() % 1_000_000}`
  await database.query(`create role ${role} login`)
  await database.query(`grant all on schema ${database.schema} to ${role}`)
  await database.query(`grant all on all tables in schema ${database.schema} to ${role}`)
  await database.query(`grant all on all sequences in schema ${database.schema} to ${role}`)
  const url = new URL(database.url)
  url.username = role
  const pool = database.pool({ connectionString: url.href })
  onTestFinished(async () => {
    await pool.end()
    await database.query(`drop owned by ${role}`)
    await database.query(`drop role ${role}`)
  })
  const outbox = outboxOf({ database: pool })
  const started = signal('the handler starts')
  const go = signal('leave to finish')
  const runs = collector<unknown>('runs')
  outbox.subscribe('orders', async ({ body }) => {
    runs.add(body)
    started.send()
    await go.wait()
  })
  await outbox.publishNow('orders', 1)
  await using _running = await outbox.start()
  await started.wait()

  await database.query(`alter role ${role} nologin`)
  await database.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [role])
  go.send()
  await outbox.told.first('breaker_opened')
  await database.query(`alter role ${role} login`)
  await outbox.told.first('acked')

  expect(runs.all).toEqual([1])
  expect(outbox.told.of('settle_failed').every(({ delayMs }) => delayMs !== null)).toBe(true)
})

test.each(['table', 'in-place'] as const)(
  'a burial whose answer was lost is told as dead, once (%s)',
  async (deadLetters) => {
    let isFirst = true
    const failpoint = {
      async reach(name: FailpointName): Promise<void> {
        if (name !== 'after_flush' || !isFirst) return
        isFirst = false
        throw Object.assign(new Error('connection lost'), { code: '08006' })
      },
    }
    const outbox = outboxOf({ ...inside({ failpoint }), deadLetters })
    outbox.subscribe('orders', (_, { reject }) => reject('no'))
    await outbox.publishNow('orders', 1)
    await using running = await outbox.start()
    await outbox.told.first('dead')
    await running.stop()

    expect([await dead(), await messages()].map(({ length }) => length)).toEqual(
      deadLetters === 'table' ? [1, 0] : [0, 1],
    )
    expect(outbox.told.of('dead')).toHaveLength(1)
    expect(outbox.told.of('lease_lost')).toEqual([])
  },
)

test('a message that this process lost and claimed again is acknowledged once, and publishes once', async () => {
  const renewals = signal('leave to renew')
  const failpoint = {
    async reach(name: FailpointName): Promise<void> {
      if (name === 'before_renewal') await renewals.wait()
    },
  }
  const outbox = outboxOf(inside({ failpoint }))
  const runs = collector<number>('runs')
  const go = signal('leave to finish')
  outbox.subscribe(
    'orders',
    async ({ deliveries }, context) => {
      await context.publish('emails', deliveries)
      runs.add(deliveries)
      await go.wait()
    },
    // Claimed again it is a suspect: for a second it waits for the handler that has lost it.
    { leaseMs: 5_000, pollMs: { min: 20, max: 100 } },
  )
  await outbox.publishNow('orders', 1)
  await using running = await outbox.start()
  await runs.take(2)
  go.send()
  renewals.send()
  await outbox.told.first('acked')
  await outbox.told.first('lease_lost')
  await running.stop()

  expect(outbox.told.of('acked')).toMatchObject([{ deliveries: 2 }])
  expect(outbox.told.of('lease_lost')).toMatchObject([{ deliveries: 1, phase: 'running' }])
  expect(await messages()).toMatchObject([{ queue: 'emails', body: Buffer.from('2') }])
})

test('follow-ons that we may not insert fail their delivery, and hold nobody up', async () => {
  const role = `reader_${Date.now() % 1_000_000}`
  await database.query(`create role ${role} login`)
  await database.query(`grant usage on schema ${database.schema} to ${role}`)
  await database.query(`grant select, update, delete on all tables in schema ${database.schema} to ${role}`)
  await database.query(`grant insert on outbox_dead to ${role}`)
  await database.query(`grant select, usage on all sequences in schema ${database.schema} to ${role}`)
  const url = new URL(database.url)
  url.username = role
  const pool = database.pool({ connectionString: url.href })
  onTestFinished(async () => {
    await pool.end()
    await database.query(`drop owned by ${role}`)
    await database.query(`drop role ${role}`)
  })
  const outbox = outboxOf({ database: pool })
  outbox.subscribe('orders', ({ body }, { publish }) => (body === 1 ? publish('emails', 1) : undefined), {
    retry: noRetry(),
  })
  const publisher = createOutbox({ database: bench.pool(), schema: database.schema })
  for (const body of [1, 2]) await publisher.publishNow('orders', body)
  await using _running = await outbox.start()
  await outbox.told.first('dead')
  await outbox.told.first('acked')

  expect(outbox.told.of('follow_on_failed')).toMatchObject([{ error: { code: '42501' } }])
  expect(outbox.told.of('breaker_opened')).toEqual([])
})

test('a stop with a database that is gone does not say that it is written', async () => {
  const log = collector<LogEntry>('log entries')
  const pool = database.pool({ max: 3 })
  const outbox = createOutbox({ database: pool, schema: database.schema, logger: log.add, stopTimeoutMs: 0 })
  const started = signal('the handler starts')
  const go = signal('leave to finish')
  outbox.subscribe('orders', async () => {
    started.send()
    await go.wait()
  })
  await outbox.publishNow('orders', 1)
  await outbox.start()
  await started.wait()
  await database.query('alter table outbox rename to away')
  go.send()
  await log.find(({ event }) => event === 'breaker_opened')
  await outbox.stop()
  await log.find(({ event, fields }) => event === 'settle_failed' && fields['delayMs'] === null)
  await database.query('alter table away rename to outbox')
  await database.query('update outbox set lease_token = null, leased_until = null')
  await eventually(() => pool.idleCount === pool.totalCount, { what: 'the connections to be given back' })
  await pool.end()

  expect(log.all.map(({ event }) => event)).not.toContain('breaker_closed')
})

test('a timer that is replaced has no history of another message', async () => {
  const outbox = outboxOf()
  await outbox.publishNow('orders', 'old', { timerId: 't', delayMs: 3_600_000 })
  await database.query(`update outbox set failure_history = '{"dropped":0,"cycles":[{}]}'`)
  await outbox.publishNow('orders', 'new', { timerId: 't', delayMs: 3_600_000, onConflict: 'replace' })

  expect(await messages()).toMatchObject([{ failure_history: null, timer_id: 't' }])
})
