import type pg from 'pg'
import {
  type Context,
  constant,
  LeaseLostError,
  type Message,
  OutboxError,
  type OutboxOptions,
  type SubscribeOptions,
} from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { collector, signal } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

const patient = { retry: constant({ delayMs: 3_600_000 }) }

beforeAll(() => database.query('create table effects (id uuid not null, what text not null)'))
beforeEach(() => database.query('delete from effects'))

type Handle = (message: Message, context: Context) => unknown

async function deliver(handler: Handle, options: SubscribeOptions = patient, given: OutboxOptions = {}) {
  const outbox = outboxOf(given)
  outbox.subscribe('orders', handler, options)
  const receipt = await outbox.publishNow('orders', { orderId: 1 })
  await outbox.drain()
  return { told: outbox.told, id: receipt.id, rows: await messages(), effects: await effects() }
}

const effects = async (): Promise<readonly string[]> =>
  (await database.query<{ what: string }>('select what from effects order by what')).map(({ what }) => what)

const write = (tx: unknown, { id }: Message, what = 'done'): Promise<unknown> =>
  (tx as pg.PoolClient).query('insert into effects values ($1, $2)', [id, what])

describe('a transaction of a handler', () => {
  test('commits its effects, its follow-ons and the end of its message together', async () => {
    const pool = database.pool({ max: 5 })
    const statements = watchStatements(pool, database.schema)
    const { told, rows, effects } = await deliver(
      async (message, context) => {
        const value = await context.transaction(async (tx) => {
          await write(tx, message)
          await context.publish('emails', 'shipped')
          return 'its value'
        })
        expect(value).toBe('its value')
      },
      patient,
      { database: pool },
    )
    await pool.end()

    expect(effects).toEqual(['done'])
    expect(rows).toMatchObject([{ queue: 'emails' }])
    expect(told.of('acked')).toMatchObject([{ queue: 'orders', followOns: 1 }])
    expect(statements.named('fence_transaction')).toHaveLength(1)
    expect(statements.named('delete_with_follow_ons')).toHaveLength(1)
    expect(statements.named('delete_acked')).toEqual([])
  })

  test('that publishes nothing deletes its message by itself, and nothing is written after it', async () => {
    const pool = database.pool({ max: 5 })
    const statements = watchStatements(pool, database.schema)
    await deliver((message, { transaction }) => transaction((tx) => write(tx, message)), patient, {
      database: pool,
    })
    await pool.end()

    expect(statements.named('delete_acked')).toHaveLength(1)
    expect(await messages()).toEqual([])
  })

  test('whose work throws commits nothing, and its message is tried again', async () => {
    const { told, rows, effects } = await deliver(async (message, context) => {
      await context.transaction(async (tx) => {
        await write(tx, message)
        void context.publish('emails', 'never')
        throw new Error('out of stock')
      })
    })

    expect(effects).toEqual([])
    expect(rows).toMatchObject([{ queue: 'orders', attempts: 1, last_error: 'Error: out of stock' }])
    expect(told.of('retried')).toHaveLength(1)
    expect(told.of('acked')).toEqual([])
  })

  test('whose COMMIT is refused commits nothing, and the error is judged as any other', async () => {
    await database.query(
      'create table strict_effects (id uuid, constraint once unique (id) deferrable initially deferred)',
    )
    const { effects } = await deliver(async (message, { transaction }) => {
      await transaction(async (tx) => {
        await write(tx, message)
        const insert = 'insert into strict_effects values ($1)'
        await (tx as pg.PoolClient).query(insert, [message.id])
        await (tx as pg.PoolClient).query(insert, [message.id])
      })
    })

    expect(effects).toEqual([])
    expect(await dead()).toMatchObject([
      { failure_reason: 'terminal_error', last_error: expect.stringContaining('once') },
    ])
  })

  test('that is swallowed when it fails does not acknowledge the message', async () => {
    const { rows } = await deliver((_, { transaction }) =>
      transaction(() => Promise.reject(new Error('no'))).catch(() => {}),
    )

    expect(rows).toMatchObject([{ attempts: 1, last_error: 'Error: no' }])
  })

  test('that fails leaves the decision to its handler', async () => {
    const { rows } = await deliver(async (_, { transaction, snooze }) => {
      await transaction(() => Promise.reject(new Error('no'))).catch(() => snooze(3_600_000))
    })

    expect(rows).toMatchObject([{ attempts: 0, last_error: null }])
  })

  test('is waited for, though its handler does not wait', async () => {
    const { rows, effects, told } = await deliver((message, { transaction }) => {
      void transaction((tx) => write(tx, message))
    })

    expect(rows).toEqual([])
    expect(effects).toEqual(['done'])
    expect(told.of('acked')).toHaveLength(1)
  })

  test('stands, whatever its handler does afterwards', async () => {
    const { rows, effects, told } = await deliver(async (message, context) => {
      await context.transaction((tx) => write(tx, message))
      context.retry()
      throw new Error('too late')
    })

    expect(rows).toEqual([])
    expect(effects).toEqual(['done'])
    expect(told.of('acked')).toHaveLength(1)
    expect(told.of('warning')).toMatchObject([{ code: 'thrown_after_decision' }])
  })

  test.each<[string, (context: Context) => void, object]>([
    ['snooze', ({ snooze }) => snooze(3_600_000), { attempts: 0, deliveries: 0 }],
    ['retry', ({ retry }) => retry(), { attempts: 1 }],
  ])('is rolled back by a %s inside, which stands', async (_, decide, row) => {
    const { rows, effects, told } = await deliver(async (message, context) => {
      const value = await context.transaction(async (tx) => {
        await write(tx, message)
        decide(context)
        return 'decided'
      })
      expect(value).toBe('decided')
    })

    expect(effects).toEqual([])
    expect(rows).toMatchObject([row])
    expect(told.of('warning')).toEqual([])
  })

  test('commits after an ack inside', async () => {
    const { rows, effects } = await deliver(async (message, context) => {
      await context.transaction(async (tx) => {
        context.ack()
        await write(tx, message)
      })
    })

    expect(rows).toEqual([])
    expect(effects).toEqual(['done'])
  })

  test.each<[string, (context: Context) => Promise<unknown>]>([
    [
      'twice',
      async ({ transaction }) => {
        await transaction(() => {})
        await transaction(() => expect.fail('it was run twice'))
      },
    ],
    [
      'after a decision',
      async ({ transaction, ack }) => {
        ack()
        await transaction(() => expect.fail('it was run after a decision'))
      },
    ],
  ])('is refused %s', async (_, work) => {
    const refusals = collector<unknown>('refusals')
    await deliver((_, context) => work(context).catch(refusals.add))

    const [refusal] = await refusals.take(1)
    expect(OutboxError.is(refusal, 'OUTBOX_ALREADY_DECIDED')).toBe(true)
    expect(await messages()).toEqual([])
  })

  test('without work is refused, and fails the delivery though nobody waits for it', async () => {
    const { rows } = await deliver((_, context) => void context.transaction(undefined as never))

    expect(rows).toMatchObject([{ attempts: 1, last_error: expect.stringContaining('to be a function') }])
  })

  test('carries what is published by its handle, too', async () => {
    const outbox = outboxOf()
    outbox.subscribe(
      'orders',
      (_, { transaction }) => transaction((tx) => outbox.publish(tx as pg.PoolClient, 'emails', 1)),
      patient,
    )
    outbox.subscribe('emails', () => {})
    await outbox.publishNow('orders', 1)
    const { acked } = await outbox.drain()

    expect(acked).toBe(2)
  })

  test('refuses what is published after it', async () => {
    const refused = signal<unknown>('the refusal')
    const { rows } = await deliver(async (message, context) => {
      await context.transaction((tx) => write(tx, message))
      await context.publish('emails', 'late').catch(refused.send)
    })

    expect(OutboxError.is(await refused.wait(), 'OUTBOX_DELIVERY_OVER')).toBe(true)
    expect(rows).toEqual([])
  })

  test('takes no connection before it is called', async () => {
    const pool = database.pool({ max: 5 })
    const counts: number[] = []
    await deliver(
      async (message, { transaction }) => {
        counts.push(pool.totalCount - pool.idleCount)
        await transaction(async (tx) => {
          counts.push(pool.totalCount - pool.idleCount)
          await write(tx, message)
        })
        counts.push(pool.totalCount - pool.idleCount)
      },
      patient,
      { database: pool, wake: 'poll' },
    )
    await pool.end()

    // The lane's own.
    expect(counts).toEqual([1, 2, 1])
  })

  test('ends all messages of a batch together', async () => {
    const outbox = outboxOf()
    outbox.subscribeBatch(
      'orders',
      async (messages, context) => {
        context.reject(messages[0] as Message, 'not this one')
        await context.transaction(async (tx) => {
          for (const message of messages) await write(tx, message, String(message.body))
          await context.publish(messages[2] as Message, { queue: 'emails', body: 1 })
        })
      },
      { size: 3, maxWaitMs: 10_000 },
    )
    const client = await bench.pool().connect()
    await client.query('begin')
    await outbox.publishMany(client, 'orders', [1, 2, 3])
    await client.query('commit')
    client.release()
    const { acked, dead: buried } = await outbox.drain()

    expect({ acked, buried }).toEqual({ acked: 2, buried: 1 })
    expect(await effects()).toEqual(['1', '2', '3'])
    expect(await messages()).toMatchObject([{ queue: 'emails' }])
    expect(
      outbox.told
        .of('acked')
        .map(({ followOns }) => followOns)
        .toSorted(),
    ).toEqual([0, 1])
  })
})

describe('a stale lease', () => {
  test('is stopped by the fence, before any work', async () => {
    const refusal = signal<unknown>('the refusal')
    const worked = signal('the work')
    const outbox = outboxOf()
    outbox.subscribe(
      'orders',
      async (_, { transaction }) => {
        await database.query('update outbox set lease_token = gen_random_uuid()')
        await transaction(() => worked.send()).catch((error) => {
          refusal.send(error)
          throw error
        })
      },
      patient,
    )
    await outbox.publishNow('orders', 1)
    await outbox.start()
    const error = await refusal.wait()
    await outbox.told.first('lease_lost')
    await outbox.stop()
    await database.query('update outbox set lease_token = null, leased_until = null')

    expect(error).toBeInstanceOf(LeaseLostError)
    expect(worked.hasHappened).toBe(false)
    expect(outbox.told.of('acked')).toEqual([])
  })
})
