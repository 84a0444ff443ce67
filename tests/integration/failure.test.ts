import pg from 'pg'
import { constant, createOutbox, type LogEntry, type Message } from 'postbox'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { useDatabase } from '../support/database.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const database = useDatabase()
let pool: pg.Pool

const pollMs = { min: 5, max: 20 }

beforeAll(async () => {
  pool = database.pool({ max: 12 })
  await outboxOf().migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

function outboxOf(options: object = {}) {
  const queues = { orders: {}, moved: { body: z.object({ at: z.coerce.date() }) } }
  return createOutbox({ database: pool, schema: database.schema, queues, logger: false, ...options })
}

const waiting = (): Promise<{ queue: string; attempts: number; leased: boolean }[]> =>
  database.query('select queue, attempts, lease_token is not null as leased from outbox order by seq')

test('a handler that throws is run again later, and its failure is recorded on the row and in the log', async () => {
  const log = collector<LogEntry>('log entries')
  const outbox = outboxOf({ logger: log.add })
  const runs = collector<number>('runs')
  outbox.subscribe('orders', failOnce, { pollMs, retry: constant({ delayMs: 3_600_000 }) })
  await outbox.publishNow('orders', 1)

  await using running = await outbox.start()
  const entry = await log.find(({ message }) => message.includes('handler failed'))
  await running.stop()
  const [row] = await database.query(
    `select attempts, deliveries, last_error, first_attempt_at = last_attempt_at as stamped, due_at > created_at as later from outbox`,
  )
  await database.query('update outbox set due_at = now()')
  await using _again = await outbox.start()
  await runs.take(2)

  expect(entry).toMatchObject({
    level: 'warn',
    fields: { queue: 'orders', attempt: 1 },
    error: { message: 'not yet', cause: { message: 'the cause' } },
  })
  expect(row).toEqual({
    attempts: 1,
    deliveries: 1,
    last_error: 'Error: not yet ← Error: the cause',
    stamped: true,
    later: true,
  })
  expect(runs.all).toEqual([1, 2])
  await eventually(async () => (await waiting()).length === 0, { what: 'the row to be deleted' })

  function failOnce(message: Message): void {
    runs.add(message.attempt)
    if (message.attempt === 1) throw new Error('not yet', { cause: new Error('the cause') })
  }
})

test('one failing message neither stops nor repeats its neighbours', async () => {
  const outbox = outboxOf()
  const got = collector<unknown>('messages')
  outbox.subscribe(
    'orders',
    (message) => {
      got.add(message.body)
      if (message.body === 'bad') throw new Error('bad')
    },
    { pollMs },
  )
  await inTransaction(pool, (client) => outbox.publishMany(client, 'orders', ['a', 'bad', 'b']))

  await using running = await outbox.start()
  await got.take(3)
  await running.stop()

  expect(got.all.filter((body) => body !== 'bad')).toEqual(['a', 'b'])
  expect(await waiting()).toMatchObject([{ attempts: expect.any(Number), leased: false }])
})

test('bytes that are not what they say, and bodies that the schema refuses, are dead letters and not crashes', async () => {
  const log = collector<LogEntry>('log entries')
  const outbox = outboxOf({ logger: log.add })
  outbox.subscribe('moved', () => expect.unreachable('must not run'), { pollMs })
  await database.query(`insert into outbox (id, queue, body) values
    (gen_random_uuid(), 'moved', '\\xff00'), (gen_random_uuid(), 'moved', convert_to('{"at":"never"}', 'utf8'))`)

  await using running = await outbox.start()
  const entries = await log.take(2)
  await running.stop()

  expect(entries.map((entry) => String(entry.error))).toEqual([
    expect.stringMatching(/OUTBOX|cannot be decoded/),
    expect.stringMatching(/at: Invalid/),
  ])
  expect(await waiting()).toEqual([])
  expect(await database.query('select failure_reason as reason from outbox_dead')).toEqual([
    { reason: 'invalid_body' },
    { reason: 'invalid_body' },
  ])
})

test('an error with NUL, half an emoji and no end is recorded all the same', async () => {
  const log = collector<LogEntry>('log entries')
  const outbox = outboxOf({ logger: log.add })
  const hostile = new Error(`a\u0000b${'🚚'.slice(0, 1)}${'x'.repeat(10_000_000)}`)
  outbox.subscribe('orders', () => Promise.reject(hostile), { pollMs })
  await outbox.publishNow('orders', 1)

  await using running = await outbox.start()
  await log.take(1)
  await running.stop()

  const [row] = await database.query(
    'select octet_length(last_error) as bytes, left(last_error, 10) as start from outbox',
  )
  expect(row).toEqual({ bytes: 8_192, start: 'Error: a\ufffdb' })
})

test.each([
  ['succeeds', 'terminal'],
  ['fails', 'retry'],
])(
  'a handler that %s after its lease was taken over changes nothing, and that is said',
  async (end, phase) => {
    const log = collector<LogEntry>('log entries')
    const outbox = outboxOf({ logger: log.add })
    const started = signal('the handler to start')
    const go = signal('leave to finish')
    const work = async (): Promise<void> => {
      started.send()
      await go.wait()
      if (end === 'fails') throw new Error('too late')
    }
    outbox.subscribe('orders', work, { pollMs })
    await outbox.publishNow('orders', 1)
    await using running = await outbox.start()
    await started.wait()

    await database.query(`update outbox set lease_token = '00000000-0000-0000-0000-000000000001'`)
    go.send()
    const entry = await log.find(({ event }) => event === 'lease_lost')
    await running.stop()

    expect(entry).toMatchObject({ level: 'warn', fields: { queue: 'orders', phase, deliveries: 1 } })
    expect(log.all.filter(({ message }) => message.includes('handler failed'))).toEqual([])
    expect(await waiting()).toEqual([{ queue: 'orders', attempts: 0, leased: true }])
    await database.query('delete from outbox')
  },
)

test('a message whose process died is delivered again when its lease has ended', async () => {
  const outbox = outboxOf()
  const got = signal<Message>('the message')
  outbox.subscribe('orders', (message) => got.send(message), { pollMs })
  await outbox.publishNow('orders', 1)
  await database.query(
    `update outbox set lease_token = gen_random_uuid(), leased_until = now() - interval '1 ms', deliveries = 1`,
  )

  await using _running = await outbox.start()

  expect(await got.wait()).toMatchObject({ attempt: 1, deliveries: 2 })
  await eventually(async () => (await waiting()).length === 0, { what: 'the row to be deleted' })
})

test('a database that fails is survived and reported, and delivery goes on when it is back', async () => {
  const log = collector<LogEntry>('log entries')
  const outbox = outboxOf({ logger: log.add })
  const got = signal('the message')
  outbox.subscribe('orders', () => got.send(), { pollMs })
  await database.query('alter table outbox rename to hidden')
  // The version table is still there, so the outbox starts; its messages are not.
  await using _running = await outbox.start()

  await log.find(({ level }) => level === 'error')
  await database.query('alter table hidden rename to outbox')
  await outbox.publishNow('orders', 1)

  await got.wait()
  await eventually(async () => (await waiting()).length === 0, { what: 'the row to be deleted' })
})

test('an idle connection that breaks is logged, and does not end the process', async () => {
  const log = collector<LogEntry>('log entries')
  // A pool as users make it: nobody listens to its errors.
  const bare = new pg.Pool({ connectionString: database.url, idleTimeoutMillis: 0 })
  const outbox = outboxOf({ database: bare, logger: log.add })
  outbox.subscribe('orders', () => {}, { pollMs: { min: 3_600_000, max: 3_600_000 } })
  await using running = await outbox.start()
  await eventually(() => outbox.health().reasons.length === 0, { what: 'the outbox to listen' })
  // It has the connections that it keeps: the next one is the application's, and idle once it is given back.
  const idle = await bare.connect()
  const { rows } = await idle.query<{ pid: number }>('select pg_backend_pid() as pid')
  idle.release()

  await database.query('select pg_terminate_backend($1)', [rows[0]?.pid])

  expect(await log.find(({ message }) => message.includes('idle connection'))).toMatchObject({
    level: 'warn',
  })
  await running.stop()
  expect(bare.listenerCount('error')).toBe(0)
  await bare.end()
})

test('a logger that throws takes nothing down', async () => {
  const thrown = signal('the logger to be called')
  const outbox = outboxOf({
    logger: () => {
      thrown.send()
      throw new Error('no disk')
    },
  })
  const got = collector<unknown>('messages')
  outbox.subscribe(
    'orders',
    (message) => {
      got.add(message.body)
      if (message.body === 'bad') throw new Error('bad')
    },
    { pollMs },
  )
  await outbox.publishNow('orders', 'bad')
  await using _running = await outbox.start()
  await thrown.wait()

  await outbox.publishNow('orders', 'good')

  await got.find((body) => body === 'good')
  await database.query('delete from outbox')
})
