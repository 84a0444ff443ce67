import type pg from 'pg'
import { createOutbox, type LogEntry, type OutboxEvent } from 'postbox'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const database = useDatabase()
const pollMs = { min: 5, max: 20 }
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool({ max: 12 })
  await outboxOf().migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

function outboxOf(options: object = {}) {
  return createOutbox({
    database: pool,
    schema: database.schema,
    queues: { orders: {} },
    logger: false,
    ...options,
  })
}

const waiting = (): Promise<{ queue: string; attempts: number; leased: boolean }[]> =>
  database.query('select queue, attempts, lease_token is not null as leased from outbox order by seq')

test('stop claims nothing more, lets the handler finish and writes what became of it', async () => {
  const outbox = outboxOf()
  const started = signal('the handler to start')
  const go = signal('leave to finish')
  const seen: unknown[] = []
  outbox.subscribe(
    'orders',
    async (message) => {
      seen.push(message.body)
      started.send()
      await go.wait()
    },
    { pollMs, concurrency: 1 },
  )
  await outbox.publishNow('orders', 'first')
  await outbox.publishNow('orders', 'second')
  const running = await outbox.start()
  await started.wait()

  const stopped = running.stop()
  go.send()
  await stopped

  expect(seen).toEqual(['first'])
  expect(await waiting()).toEqual([{ queue: 'orders', attempts: 0, leased: false }])
})

test('stop aborts the signal of a handler whose time is up, and resolves', async () => {
  const outbox = outboxOf({ stopTimeoutMs: 0 })
  const started = signal('the handler to start')
  outbox.subscribe(
    'orders',
    (_, { signal: abandoned }) =>
      new Promise((_resolve, reject) => {
        abandoned.addEventListener('abort', () => reject(abandoned.reason))
        started.send()
      }),
    { pollMs },
  )
  await outbox.publishNow('orders', 1)
  const running = await outbox.start()
  await started.wait()

  await running.stop()

  expect(await waiting()).toEqual([{ queue: 'orders', attempts: 0, leased: false }])
})

test('a handler that ignores its signal does not hold the process: the row waits for its lease to end', async () => {
  const log = collector<LogEntry>('log entries')
  const outbox = outboxOf({ stopTimeoutMs: 0, logger: log.add })
  const started = signal('the handler to start')
  const go = signal('leave to finish')
  outbox.subscribe(
    'orders',
    async () => {
      started.send()
      await go.wait()
    },
    { pollMs },
  )
  await outbox.publishNow('orders', 1)
  const running = await outbox.start()
  await started.wait()

  await running.stop()

  expect(log.all).toMatchObject([{ level: 'warn', message: expect.stringContaining('handlers still run') }])
  expect(await waiting()).toMatchObject([{ leased: true }])
  go.send()
  await eventually(async () => (await waiting()).length === 0, { what: 'the late handler to settle' })
})

test('a handler that never ends keeps neither a connection nor its lease: another process gets the message', async () => {
  const outbox = outboxOf({ stopTimeoutMs: 0 })
  const started = signal('the handler to start')
  const never = (): Promise<never> => {
    started.send()
    return new Promise(() => {})
  }
  outbox.subscribe('orders', never, { pollMs, leaseMs: 1_000 })
  await outbox.publishNow('orders', 1)
  const running = await outbox.start()
  await started.wait()

  await running.stop()
  await eventually(() => pool.totalCount === pool.idleCount, { what: 'all connections to be given back' })
  const other = outboxOf()
  const got = signal('the message, again')
  other.subscribe('orders', () => got.send(), { pollMs })
  await using _running = await other.start()

  await got.wait()
  await eventually(async () => (await waiting()).length === 0, { what: 'the row to be deleted' })
})

test('run works until its signal aborts, then drains', async () => {
  const outbox = outboxOf()
  const got = signal('the message')
  outbox.subscribe('orders', () => got.send(), { pollMs })
  await outbox.publishNow('orders', 1)
  const shutdown = new AbortController()

  const running = outbox.run({ signal: shutdown.signal })
  await got.wait()
  shutdown.abort()
  await running

  expect(await waiting()).toEqual([])
})

test('an outbox can be started again', async () => {
  const outbox = outboxOf()
  const got = collector<unknown>('messages')
  outbox.subscribe('orders', (message) => got.add(message.body), { pollMs })
  await outbox.start()
  await outbox.stop()
  await outbox.publishNow('orders', 'after the stop')

  await using _running = await outbox.start()

  expect(await got.take(1)).toEqual(['after the stop'])
  await eventually(async () => (await waiting()).length === 0, { what: 'the row to be deleted' })
})

test('a claim that was under way when the outbox stopped neither claims more nor starts a handler', async () => {
  const released = signal('what it brought is given back')
  const onEvent = ({ kind }: OutboxEvent): void => void (kind === 'released' && released.send())
  const outbox = outboxOf({ stopTimeoutMs: 0, onEvent })
  const seen: unknown[] = []
  outbox.subscribe('orders', ({ body }) => seen.push(body), { pollMs })
  await outbox.publishNow('orders', 'fresh')
  const blocker = await pool.connect()
  await blocker.query('begin')
  await blocker.query(`lock table ${database.schema}.outbox in access exclusive mode`)
  const running = await outbox.start()
  const blocked = `select count(*)::int as claims from pg_stat_activity
                    where wait_event_type = 'Lock' and starts_with(application_name, $1)`
  const claims = async (): Promise<number> =>
    (await database.query<{ claims: number }>(blocked, [database.applicationName]))[0]?.claims ?? 0
  await eventually(async () => (await claims()) === 1, { what: 'the claim to wait' })

  await running.stop()
  await blocker.query('commit')
  blocker.release()
  await released.wait()

  expect(seen).toEqual([])
  expect(await waiting()).toEqual([{ queue: 'orders', attempts: 0, leased: false }])
})
