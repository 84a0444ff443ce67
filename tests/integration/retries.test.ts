import { constant, type Failure } from 'postbox'
import { describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually, signal } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1)
const fail = (): never => {
  throw new Error('not now')
}

describe('a message that always fails', () => {
  test('is run as often as its policy allows, and is dead then, with all its attempts', async () => {
    const runs = collector<number>('runs')
    const outbox = outboxOf()
    outbox.subscribe(
      'orders',
      ({ attempt }) => {
        runs.add(attempt)
        fail()
      },
      { retry: constant({ delayMs: 1, maxAttempts: 4 }) },
    )
    await outbox.publishNow('orders', 1)
    await using _running = await outbox.start()
    const event = await outbox.told.first('dead')

    expect(runs.all).toEqual([1, 2, 3, 4])
    expect(outbox.told.of('retried').map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect(event).toMatchObject({ reason: 'retry_terminal', attempts: 4, deliveries: 4, attempt: 4 })
    expect(await dead()).toMatchObject([{ attempts: 4, deliveries: 4, failure_reason: 'retry_terminal' }])
  })

  // N-06
  test('does so beside ninety-nine others, and their retries are written together', async () => {
    const pool = database.pool({ max: 5 })
    const statements = watchStatements(pool, database.schema)
    const outbox = outboxOf({ database: pool })
    outbox.subscribe('orders', fail, { retry: constant({ delayMs: 1, maxAttempts: 10 }), concurrency: 20 })
    await inTransaction(pool, (tx) => outbox.publishMany(tx, 'orders', upTo(100)))
    const running = await outbox.start()
    await outbox.told.take('dead', 100)
    await running.stop()
    await pool.end()

    expect(outbox.told.of('retried')).toHaveLength(900)
    expect(statements.named('reschedule_retried').length).toBeLessThan(450)
    expect(await messages()).toEqual([])
    expect(await dead()).toHaveLength(100)
  })
})

describe('a retry policy', () => {
  test('is told when the first run failed and when this one did, by the database’s clock', async () => {
    const failures: Failure[] = []
    const outbox = outboxOf()
    outbox.subscribe('orders', fail, {
      retry: (failure) => {
        failures.push(failure)
        return failure.attempt < 3 ? 20 : null
      },
    })
    const clock = async (): Promise<number> => {
      const [row] = await database.query<{ now: Date }>('select clock_timestamp() as now')
      return row!.now.getTime()
    }
    await outbox.publishNow('orders', 1)
    const before = await clock()
    await using _running = await outbox.start()
    await outbox.told.first('dead')
    const after = await clock()

    const [first, second, third] = failures
    expect(failures.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    expect(first!.firstAttemptAt).toEqual(first!.lastAttemptAt)
    // What was stored then is what is read now; the row's own time is that of the write, a moment later.
    expect(third!.firstAttemptAt).toEqual(second!.firstAttemptAt)
    for (const { firstAttemptAt, lastAttemptAt } of failures) {
      expect(firstAttemptAt.getTime()).toBeGreaterThanOrEqual(before - 1)
      expect(lastAttemptAt.getTime()).toBeGreaterThanOrEqual(firstAttemptAt.getTime() - 1)
      expect(lastAttemptAt.getTime()).toBeLessThanOrEqual(after + 1)
    }
    expect(third!.lastAttemptAt.getTime() - third!.firstAttemptAt.getTime()).toBeGreaterThanOrEqual(38)
  })

  test('with a budget of time ends when that is used up', async () => {
    const outbox = outboxOf()
    outbox.subscribe('orders', fail, {
      retry: constant({ delayMs: 30, maxTotalMs: 50, maxAttempts: null }),
    })
    await outbox.publishNow('orders', 1)
    await using _running = await outbox.start()
    const { attempts } = await outbox.told.first('dead')

    expect(attempts).toBe(2)
  })
})

// N-07
test('a flush of retries whose connection is cut has written none of them, and writes all when it is tried again', async () => {
  const outbox = outboxOf()
  const started = collector<number>('handlers')
  const go = signal('leave to fail')
  const work = async ({ body }: { readonly body: unknown }): Promise<void> => {
    started.add(Number(body))
    await go.wait()
    fail()
  }
  outbox.subscribe('orders', work, { retry: constant({ delayMs: 3_600_000 }), concurrency: 20 })
  await inTransaction(bench.pool(), (tx) => outbox.publishMany(tx, 'orders', upTo(20)))
  await using _running = await outbox.start()
  await started.take(20)
  const blocker = await database.client()
  await blocker.query('begin')
  await blocker.query('select from outbox order by seq desc limit 1 for update')

  go.send()
  const waits = (): Promise<{ pid: number }[]> =>
    database.query(
      `select pid from pg_stat_activity
        where query like '%last_attempt_at = now()%' and wait_event_type = 'Lock' and starts_with(application_name, $1)`,
      [database.applicationName],
    )
  const [waiting] = await eventually(async () => ((await waits()).length > 0 ? waits() : null), {
    what: 'the flush to wait for the last row',
  })
  await database.query('select pg_terminate_backend($1)', [waiting!.pid])
  await outbox.told.first('settle_failed')
  const inBetween = await messages()
  await blocker.query('rollback')
  await blocker.end()
  await outbox.told.take('retried', 20)

  expect(inBetween.map((row) => row['attempts'])).toEqual(upTo(20).map(() => 0))
  expect((await messages()).map((row) => row['attempts'])).toEqual(upTo(20).map(() => 1))
  expect(started.all).toHaveLength(20)
})
