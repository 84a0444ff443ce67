// What can go wrong around a transaction of a handler's: strangers on its connection, neighbours in its batch, locks that outlive it.
import type pg from 'pg'
import { constant, type Message, type OutboxOptions } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { endOfTime, timeoutMs } from '../support/out-of-time.ts'
import { longWaitLimitMs } from '../support/patience.ts'
import { eventually, signal } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench
const patient = { retry: constant({ delayMs: 3_600_000 }) }

beforeAll(() => database.query('create table effects (what text not null)'))
beforeEach(() => database.query('delete from effects'))

const effects = async (): Promise<readonly string[]> =>
  (await database.query<{ what: string }>('select what from effects order by what')).map(({ what }) => what)
const write = (tx: unknown, what: unknown): Promise<unknown> =>
  (tx as pg.PoolClient).query('insert into effects values ($1)', [String(what)])
const untilTold = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

test('a connection that has gone back to its pool is left alone, whoever has it now', async () => {
  const pool = database.pool({ max: 2 })
  onTestFinished(() => pool.end())
  const statements = watchStatements(pool, database.schema)
  const { options, timeIsOver } = endOfTime()
  const outbox = outboxOf({ database: pool, wake: 'poll', ...options })
  const working = signal('the work')
  outbox.subscribe(
    'orders',
    (_, { transaction, signal: told }) =>
      transaction(async (tx) => {
        await write(tx, 'rolled back')
        working.send()
        await untilTold(told)
      }),
    { ...patient, timeoutMs },
  )
  await outbox.publishNow('orders', 1)
  await outbox.start()
  await working.wait()
  // Next in the queue of the pool, of which the work has the last connection.
  const connecting = pool.connect()
  timeIsOver()
  const stranger = await connecting
  await stranger.query('begin')
  await write(stranger, 'a payment')
  await outbox.told.first('retried')
  await outbox.stop()
  const { command } = await stranger.query('commit')
  stranger.release()

  expect(command).toBe('COMMIT')
  expect(await effects()).toEqual(['a payment'])
  expect(statements.named('doom_transaction')).toEqual([])
})

describe('a transaction of a batch', () => {
  const batches = { size: 3, maxWaitMs: 10_000, ...patient }

  async function publish(options: OutboxOptions = {}) {
    const outbox = outboxOf(options)
    const client = await bench.pool().connect()
    await client.query('begin')
    await outbox.publishMany(client, 'orders', [1, 2, 3])
    await client.query('commit')
    client.release()
    return outbox
  }

  test.each(['undecided', 'acknowledged'])(
    'in which one is declined gives the others back, %s as they are: they come again',
    async (how) => {
      const outbox = await publish()
      const runs: number[] = []
      outbox.subscribeBatch(
        'orders',
        async (all, context) => {
          runs.push(all.length)
          await context.transaction(async (tx) => {
            for (const message of all) {
              if (message.body === 1) context.retry(message as Message)
              else await write(tx, message.body)
              if (message.body !== 1 && how === 'acknowledged') context.ack(message as Message)
            }
          })
        },
        { ...batches, maxWaitMs: 200 },
      )
      const { acked, retried } = await outbox.drain()

      expect({ acked, retried }).toEqual({ acked: 2, retried: 1 })
      expect(await effects()).toEqual(['2', '3'])
      expect(await messages()).toMatchObject([{ attempts: 1 }])
      expect(runs[0]).toBe(3)
    },
  )
})

describe('what was said inside a transaction that failed', () => {
  test('is not published with a later acknowledgement', async () => {
    const outbox = outboxOf()
    outbox.subscribe('orders', async (_, context) => {
      await context.publish('emails', 'before')
      const failing = context.transaction(async () => {
        await context.publish('emails', 'inside')
        throw new Error('no')
      })
      await failing.catch(() => context.ack())
      await context.publish('emails', 'after')
    })
    await outbox.publishNow('orders', 1)
    await outbox.drain()

    const published = (await messages()).map((row) => String(row['body']))
    expect(published).toEqual(['"before"', '"after"'].map((text) => text.replaceAll('"', '')))
  })

  test('is no acknowledgement', async () => {
    const outbox = outboxOf()
    outbox.subscribe(
      'orders',
      (_, context) =>
        context.transaction(async (tx) => {
          context.ack()
          await write(tx, 'never')
          throw new Error('no')
        }),
      patient,
    )
    await outbox.publishNow('orders', 1)
    const { acked, retried } = await outbox.drain()

    expect({ acked, retried }).toEqual({ acked: 0, retried: 1 })
    expect(await effects()).toEqual([])
  })
})

describe('a lock that outlives its transaction', () => {
  test('below a savepoint keeps nobody else waiting: its message is left to its lease', async () => {
    const [nested, goOn] = [signal('the savepoint'), signal('the end of the work')]
    const { options, timeIsOver } = endOfTime({ statementTimeoutMs: 2_000 })
    const outbox = outboxOf(options)
    // Should it fail while it runs, it would take the messages of all tests behind it.
    onTestFinished(async () => {
      goOn.send()
      await outbox.stop()
    })
    outbox.subscribe(
      'orders',
      (_, { transaction }) =>
        transaction(async (tx) => {
          await (tx as pg.PoolClient).query('savepoint nested')
          nested.send()
          await goOn.wait({ withinMs: longWaitLimitMs })
        }),
      { ...patient, timeoutMs },
    )
    outbox.subscribe('emails', () => {})
    await outbox.publishNow('orders', 1)
    await outbox.start()
    await nested.wait()
    timeIsOver()
    const lost = await outbox.told.first('lease_lost')
    await outbox.publishNow('emails', 1)
    await outbox.told.first('acked')
    goOn.send()
    await outbox.stop()
    await eventually(async () => (await unlocked()) === 1, { what: 'the lock to go' })
    await database.query('update outbox set lease_token = null, leased_until = null')

    expect(lost).toMatchObject({ queue: 'orders', phase: 'terminal', mayHaveLanded: false })
    expect(outbox.told.of('settle_failed')).toEqual([])
    expect(outbox.told.of('breaker_opened')).toEqual([])
  })

  test('of a statement whose connection broke is ended, and its message tried again', async () => {
    const pool = database.pool({ max: 6 })
    onTestFinished(() => pool.end())
    pool.on('error', () => {})
    const outbox = outboxOf({ database: pool })
    outbox.subscribe(
      'orders',
      (_, { transaction }) =>
        transaction(async (tx) => {
          const client = tx as pg.PoolClient & { connection: { stream: { destroy(): void } } }
          await write(tx, 'never')
          const sleeping = client.query('select pg_sleep(600)')
          client.connection.stream.destroy()
          await sleeping
        }),
      patient,
    )
    await outbox.publishNow('orders', 1)
    const { retried } = await outbox.drain()

    expect(retried).toBe(1)
    expect(outbox.told.of('settle_failed')).toEqual([])
    expect(await effects()).toEqual([])
  })

  async function unlocked(): Promise<number> {
    return (await database.query('select from outbox for update skip locked')).length
  }
})

test('a timer that is armed in a transaction does not make its COMMIT impatient', async () => {
  const pool = database.pool({ max: 6 })
  onTestFinished(() => pool.end())
  const statements = watchStatements(pool, database.schema)
  const outbox = outboxOf({ database: pool })
  outbox.subscribe('orders', (_, { transaction, publish }) =>
    transaction(async (tx) => {
      await (tx as pg.PoolClient).query(`set local lock_timeout = '7s'`)
      await publish('reminders', 1, { timerId: 't', delayMs: 3_600_000 })
    }),
  )
  await outbox.publishNow('orders', 1)
  await outbox.drain()

  expect(statements.named('delete_with_follow_ons')).toHaveLength(1)
  expect(statements.named('restore_patience')).toMatchObject([{ values: ['0'], rows: [{ patience: '0' }] }])
})

describe('work that ends its transaction by itself', () => {
  test.each(['commit', 'rollback'])(
    'by a %s is a fault of the code: its message is dead, and not run again',
    async (end) => {
      const outbox = outboxOf()
      outbox.subscribe(
        'orders',
        (_, { transaction }) =>
          transaction(async (tx) => {
            await write(tx, 'once')
            await (tx as pg.PoolClient).query(end)
          }),
        patient,
      )
      await outbox.publishNow('orders', 1)
      const { acked, dead } = await outbox.drain()

      expect({ acked, dead }).toEqual({ acked: 0, dead: 1 })
      expect(outbox.told.of('dead')).toMatchObject([{ reason: 'terminal_error' }])
      expect(await effects()).toEqual(end === 'commit' ? ['once'] : [])
    },
  )

  test('by a commit, and then fails, is not run again either', async () => {
    const outbox = outboxOf()
    outbox.subscribe(
      'orders',
      (_, { transaction }) =>
        transaction(async (tx) => {
          await write(tx, 'once')
          await (tx as pg.PoolClient).query('commit')
          throw new Error('no')
        }),
      patient,
    )
    await outbox.publishNow('orders', 1)

    expect(await outbox.drain()).toMatchObject({ acked: 0, retried: 0, dead: 1 })
    expect(await effects()).toEqual(['once'])
  })
})
