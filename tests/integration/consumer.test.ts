import type pg from 'pg'
import { createOutbox, type Message } from 'postbox'
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
  const queues = { orders: {}, emails: {}, moved: { body: z.object({ at: z.coerce.date() }) } }
  return createOutbox({ database: pool, schema: database.schema, queues, logger: false, ...options })
}

const waiting = (): Promise<{ queue: string; attempts: number; leased: boolean }[]> =>
  database.query('select queue, attempts, lease_token is not null as leased from outbox order by seq')

test('a message reaches its handler as it was published, and is deleted when the handler is done', async () => {
  const outbox = outboxOf({ generation: 3 })
  const got = signal<Message>('the message')
  outbox.subscribe('orders', (message) => got.send(message), { pollMs })
  const receipt = await outbox.publishNow('orders', { orderId: 1 }, { key: 'k', headers: { tenant: 'a' } })

  await using _running = await outbox.start()
  const message = await got.wait()

  expect(message).toMatchObject({
    ...receipt,
    queue: 'orders',
    key: 'k',
    body: { orderId: 1 },
    headers: { tenant: 'a' },
    correlationId: receipt.id,
    attempt: 1,
    deliveries: 1,
    generation: 3,
  })
  expect(message.createdAt).toBeInstanceOf(Date)
  expect(Buffer.from(message.raw).toString()).toBe('{"orderId":1}')
  expect(Object.isFrozen(message)).toBe(true)
  await eventually(async () => (await waiting()).length === 0, { what: 'the row to be deleted' })
})

test('the handler gets the output of the queue’s schema', async () => {
  const outbox = outboxOf()
  const got = signal<Date>('the date')
  outbox.subscribe('moved', (message) => got.send(message.body.at), { pollMs })
  await outbox.publishNow('moved', { at: '2030-01-02T03:04:05Z' })

  await using _running = await outbox.start()

  expect(await got.wait()).toEqual(new Date('2030-01-02T03:04:05Z'))
})

test('a rolled back message is never delivered, a committed one is', async () => {
  const outbox = outboxOf()
  const got = collector<unknown>('messages')
  outbox.subscribe('orders', (message) => got.add(message.body), { pollMs })
  await using _running = await outbox.start()
  const client = await pool.connect()

  await client.query('begin')
  await outbox.publish(client, 'orders', 'rolled back')
  await client.query('rollback')
  await client.query('begin')
  await outbox.publish(client, 'orders', 'committed')
  await client.query('commit')
  client.release()

  expect(await got.take(1)).toEqual(['committed'])
  await eventually(async () => (await waiting()).length === 0, { what: 'the row to be deleted' })
  expect(got.all).toEqual(['committed'])
})

test('five hundred messages are each delivered once by two outboxes that share them', async () => {
  const got = collector<number>('messages')
  const [one, two] = [outboxOf(), outboxOf()]
  for (const outbox of [one, two])
    outbox.subscribe('orders', (message) => got.add(message.body as number), { pollMs, concurrency: 7 })
  await inTransaction(pool, (client) =>
    one.publishMany(
      client,
      'orders',
      Array.from({ length: 500 }, (_, index) => index),
    ),
  )

  await using _first = await one.start()
  await using _second = await two.start()
  await got.take(500)
  await eventually(async () => (await waiting()).length === 0, { what: 'the rows to be deleted' })

  expect([...got.all].sort((a, b) => a - b)).toEqual(Array.from({ length: 500 }, (_, index) => index))
})

test('no more handlers run at once than concurrency allows', async () => {
  const outbox = outboxOf()
  let running = 0
  let most = 0
  const done = collector<number>('messages')
  outbox.subscribe(
    'orders',
    async () => {
      most = Math.max(most, ++running)
      await new Promise((resolve) => setImmediate(resolve))
      running--
      done.add(1)
    },
    { pollMs, concurrency: 3 },
  )
  await inTransaction(pool, (client) =>
    outbox.publishMany(
      client,
      'orders',
      Array.from({ length: 20 }, () => 1),
    ),
  )

  await using _running = await outbox.start()
  await done.take(20)

  expect(most).toBe(3)
  await eventually(async () => (await waiting()).length === 0, { what: 'the rows to be deleted' })
})

test('a delayed message waits for its time, while others pass it', async () => {
  const outbox = outboxOf()
  const got = collector<unknown>('messages')
  outbox.subscribe('orders', (message) => got.add(message.body), { pollMs })
  await outbox.publishNow('orders', 'later', { delayMs: 3_600_000 })
  await outbox.publishNow('orders', 'now')

  await using _running = await outbox.start()
  expect(await got.take(1)).toEqual(['now'])
  await database.query(`update outbox set due_at = now()`)

  expect(await got.take(2)).toEqual(['now', 'later'])
  await eventually(async () => (await waiting()).length === 0, { what: 'the rows to be deleted' })
})

test('what was promised for a time goes before fresh messages', async () => {
  const outbox = outboxOf()
  const got = collector<unknown>('messages')
  await outbox.publishNow('orders', 'fresh')
  await outbox.publishNow('orders', 'timer', { delayMs: 1 })
  await database.query(`update outbox set due_at = now() - interval '1 s' where due_at is not null`)
  outbox.subscribe('orders', (message) => got.add(message.body), { pollMs, concurrency: 1 })

  await using _running = await outbox.start()

  expect(await got.take(2)).toEqual(['timer', 'fresh'])
  await eventually(async () => (await waiting()).length === 0, { what: 'the rows to be deleted' })
})

test('a lease lasts as long as the subscriber asked for', async () => {
  const outbox = outboxOf()
  const started = signal('the handler to start')
  const go = signal('leave to finish')
  const work = async (): Promise<void> => {
    started.send()
    await go.wait()
  }
  outbox.subscribe('orders', work, { pollMs, leaseMs: 60_000 })
  await outbox.publishNow('orders', 1)

  await using running = await outbox.start()
  await started.wait()
  const [lease] = await database.query(
    `select leased_until > now() + interval '50 s' as long, leased_until <= now() + interval '60 s' as short from outbox`,
  )
  go.send()
  await running.stop()

  expect(lease).toEqual({ long: true, short: true })
})

test('a message is deleted when its own handler is done, however long its neighbours take', async () => {
  const outbox = outboxOf()
  const go = signal('leave to finish')
  const slow = async ({ body }: Message): Promise<void> => {
    if (body === 'slow') await go.wait()
  }
  outbox.subscribe('orders', slow, { pollMs })
  await inTransaction(pool, (client) => outbox.publishMany(client, 'orders', ['slow', 'fast']))

  await using running = await outbox.start()
  await eventually(async () => (await waiting()).length === 1, { what: 'the fast message to be deleted' })
  go.send()
  await running.stop()

  expect(await waiting()).toEqual([])
})

test('a queue that nobody serves keeps its messages', async () => {
  const outbox = outboxOf()
  const got = signal('the other queue’s message')
  outbox.subscribe('orders', () => got.send(), { pollMs })
  await outbox.publishNow('emails', 1)
  await outbox.publishNow('orders', 1)

  await using running = await outbox.start()
  await got.wait()
  await running.stop()

  expect(await waiting()).toEqual([{ queue: 'emails', attempts: 0, leased: false }])
})

test('a subscriber added while the outbox runs begins at once', async () => {
  const outbox = outboxOf()
  await using _running = await outbox.start()
  const got = signal('the message')

  outbox.subscribe('orders', () => got.send(), { pollMs })
  await outbox.publishNow('orders', 1)

  await got.wait()
  await eventually(async () => (await waiting()).length === 0, { what: 'the row to be deleted' })
})
