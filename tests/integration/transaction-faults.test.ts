import type pg from 'pg'
import { constant, type Message, type OutboxOptions } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { extendLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { type Told, useBench } from '../support/decisions-bench.ts'
import { endOfTime, timeoutMs } from '../support/out-of-time.ts'
import { longWaitLimitMs } from '../support/patience.ts'
import { collector, eventually, signal } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages } = bench
const names = resolveNames({ schema: database.schema, table: 'outbox' })

const patient = { retry: constant({ delayMs: 3_600_000 }) }

beforeAll(() => database.query('create table effects (id uuid not null)'))
beforeEach(() => database.query('delete from effects'))

const count = async (): Promise<number> =>
  (await database.query<{ n: number }>('select count(*)::int as n from effects'))[0]?.n ?? Number.NaN

const insert = 'insert into effects values ($1)'
const write = (tx: unknown, { id }: Message): Promise<unknown> => (tx as pg.PoolClient).query(insert, [id])

describe('while a transaction has its message', () => {
  test('nobody gets it, though its lease has ended, and no renewal waits for it', async () => {
    const [inside, goOn] = [signal<Message>('the work'), signal('the word to go on')]
    const outbox = outboxOf()
    outbox.subscribe('orders', async (message, { transaction }) => {
      await database.query(`update outbox set leased_until = now() - interval '1 hour'`)
      await transaction(async (tx) => {
        await write(tx, message)
        inside.send(message)
        await goOn.wait()
      })
    })
    await outbox.publishNow('orders', 1)
    const running = await outbox.start()
    const { seq } = await inside.wait()
    const [row] = await database.query<{ token: string }>('select lease_token::text as token from outbox')
    const others = outboxOf()
    others.subscribe('orders', () => expect.fail('it was stolen'))
    const { text, values } = extendLeases(names, [{ seq, token: row?.token ?? '', leaseMs: 1_000 }])
    const [renewed, drained] = [await database.query(text, [...values]), await others.drain()]
    goOn.send()
    await outbox.told.first('acked')
    await running.stop()

    expect(renewed).toEqual([])
    expect(drained).toMatchObject({ acked: 0, lost: 0, isEmpty: true })
    expect(await count()).toBe(1)
    expect(await messages()).toEqual([])
  })

  test('its lease can be extended, which the lock has done already', async () => {
    const outbox = outboxOf()
    outbox.subscribe('orders', (message, { transaction, lease }) =>
      transaction(async (tx) => {
        await write(tx, message)
        await lease.extend()
      }),
    )
    await outbox.publishNow('orders', 1)

    expect(await outbox.drain()).toMatchObject({ acked: 1 })
  })
})

describe('a transaction whose delivery is out of time', () => {
  /** A handler that is out of time within its transaction, and what it meets when it goes on regardless. */
  async function outOfTime(
    work: (
      tx: pg.PoolClient,
      given: { message: Message; told: Told; timeIsOver(): void },
    ) => Promise<unknown>,
  ) {
    const ends = collector<unknown>('what became of the work')
    const pool = database.pool({ max: 6 })
    const statements = watchStatements(pool, database.schema)
    const { options, timeIsOver } = endOfTime()
    const outbox = outboxOf({ database: pool, ...options })
    outbox.subscribe(
      'orders',
      (message, { transaction }) =>
        transaction((tx) => {
          const working = work(tx as pg.PoolClient, { message, told: outbox.told, timeIsOver })
          working.then(ends.add, ends.add)
          return working
        }),
      { ...patient, timeoutMs },
    )
    await outbox.publishNow('orders', 1)
    const { retried } = await outbox.drain()
    const [end] = await ends.take(1)
    await pool.end()
    return { retried, end, statements, told: outbox.told, rows: await messages() }
  }

  test('fails at once, and what its work still does in it is refused', async () => {
    const { retried, end, rows } = await outOfTime(async (tx, { message, told, timeIsOver }) => {
      await write(tx, message)
      timeIsOver()
      await told.first('retried')
      await write(tx, message)
    })

    expect(retried).toBe(1)
    expect(end).toMatchObject({ code: '25P02' })
    expect(rows).toMatchObject([{ attempts: 1, last_error: expect.stringContaining('took longer than') }])
    expect(await count()).toBe(0)
  })

  test('ends the statement that it is at', async () => {
    const { retried, end, statements } = await outOfTime(async (tx, { message, timeIsOver }) => {
      await write(tx, message)
      const sleeping = tx.query('select pg_sleep(600)')
      timeIsOver()
      await sleeping
    })

    expect(retried).toBe(1)
    expect(end).toMatchObject({ code: '57014' })
    expect(statements.named('cancel_transaction').flatMap(({ rows }) => rows)).toContainEqual({
      cancelled: 'true',
    })
    expect(await count()).toBe(0)
  })

  test('is not waited for, though its work never ends', async () => {
    const goOn = signal('the end of the test')
    const { options, timeIsOver } = endOfTime()
    const outbox = outboxOf(options)
    outbox.subscribe(
      'orders',
      (message, { transaction }) =>
        transaction(async (tx) => {
          await write(tx, message)
          timeIsOver()
          await goOn.wait({ withinMs: longWaitLimitMs })
        }),
      { ...patient, timeoutMs },
    )
    await outbox.publishNow('orders', 1)
    const { retried } = await outbox.drain()
    const whileItHangs = { retried, count: await count(), rows: await messages() }
    goOn.send()
    await outbox.drain()

    expect(whileItHangs).toMatchObject({ retried: 1, count: 0, rows: [{ attempts: 1 }] })
    expect(await count()).toBe(0)
  })

  test('does not begin any more when a connection comes too late', async () => {
    const pool = database.pool({ max: 2 })
    const statements = watchStatements(pool, database.schema)
    const { options, timeIsOver } = endOfTime()
    const outbox = outboxOf({ database: pool, wake: 'poll', ...options })
    const hog = signal<pg.PoolClient>('the last connection')
    outbox.subscribe(
      'orders',
      async (_, { transaction }) => {
        hog.send(await pool.connect())
        const beginning = transaction(() => expect.fail('it has begun'))
        timeIsOver()
        await beginning
      },
      { ...patient, timeoutMs },
    )
    await outbox.publishNow('orders', 1)
    const { retried } = await outbox.drain()
    ;(await hog.wait()).release()
    await eventually(() => statements.named('rollback').length === 1, { what: 'its end' })
    await pool.end()

    expect(retried).toBe(1)
    expect(statements.named('fence_transaction')).toEqual([])
  })
})

describe('a COMMIT whose answer is lost', () => {
  const lost = Object.assign(new Error('connection lost'), { code: '08006' })

  /** A database that loses the answer to the COMMIT of its first transaction: after or before it was carried out, or while it is. */
  function forgetful(how: 'committed' | 'aborted' | 'under way') {
    const pool = database.pool({ max: 6 })
    onTestFinished(() => pool.end())
    let finish: (() => Promise<unknown>) | null = null
    let isFirst = true
    const asked: string[] = []
    const run = async (client: pg.Pool | pg.PoolClient, text: string, values: readonly unknown[]) =>
      (await client.query(text, [...values])).rows
    const given: OutboxOptions['database'] = {
      async query(text, values) {
        const rows = await run(pool, text, values)
        if (!text.includes('pg_xact_status')) return rows
        asked.push(rows[0]?.status)
        await finish?.()
        return rows
      },
      async transaction(work) {
        const client = await pool.connect()
        await client.query('begin')
        const end = async (command: string): Promise<void> => {
          finish = null
          await client.query(command)
          client.release()
        }
        try {
          const value = await work({ query: (text, values) => run(client, text, values) })
          if (!isFirst) return value
          isFirst = false
          if (how === 'under way') finish = () => end('commit')
          else await end(how === 'committed' ? 'commit' : 'rollback')
        } catch (error) {
          await end('rollback')
          throw error
        }
        throw lost
      },
    }
    return { given, asked }
  }

  async function deliver(how: Parameters<typeof forgetful>[0]) {
    const { given, asked } = forgetful(how)
    const outbox = outboxOf({ database: given })
    const values = collector<unknown>('what the transaction gave')
    outbox.subscribe(
      'orders',
      async (message, { transaction }) => {
        const value = transaction(async (tx) => {
          await (tx as { query(text: string, values: unknown[]): Promise<unknown> }).query(insert, [
            message.id,
          ])
          return 'its value'
        })
        await value.then(values.add, values.add)
        await value
      },
      patient,
    )
    await outbox.publishNow('orders', 1)
    const drained = await outbox.drain()
    return { drained, asked, value: (await values.take(1))[0], told: outbox.told, rows: await messages() }
  }

  test('is known to be carried out when the database says so: the message is acknowledged', async () => {
    const { drained, asked, value, told, rows } = await deliver('committed')

    expect(asked).toEqual(['committed'])
    expect(value).toBe('its value')
    expect(drained).toMatchObject({ acked: 1, retried: 0, lost: 0 })
    expect(told.of('acked')).toHaveLength(1)
    expect(rows).toEqual([])
    expect(await count()).toBe(1)
  })

  test('is known not to be when the database says so: the message is tried again', async () => {
    const { drained, asked, value, rows } = await deliver('aborted')

    expect(asked).toEqual(['aborted'])
    expect(value).toBe(lost)
    expect(drained).toMatchObject({ acked: 0, retried: 1 })
    expect(rows).toMatchObject([{ attempts: 1, last_error: 'Error: connection lost' }])
    expect(await count()).toBe(0)
  })

  test('is asked for again while it is under way', async () => {
    const { drained, asked } = await deliver('under way')

    expect(asked).toEqual(['in progress', 'committed'])
    expect(drained).toMatchObject({ acked: 1 })
    expect(await count()).toBe(1)
  })
})

test('a transaction is rolled back by a stop that has waited long enough, and its message given back', async () => {
  const inside = signal('the work')
  const outbox = outboxOf({ stopTimeoutMs: 0 })
  outbox.subscribe('orders', (message, { transaction, signal }) =>
    transaction(async (tx) => {
      await write(tx, message)
      inside.send()
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    }),
  )
  await outbox.publishNow('orders', 1)
  await outbox.start()
  await inside.wait()
  await outbox.stop()

  expect(outbox.told.of('released')).toHaveLength(1)
  expect(await messages()).toMatchObject([{ attempts: 0, deliveries: 0, lease_token: null }])
  expect(await count()).toBe(0)
})
