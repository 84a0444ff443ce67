import { type LogEntry, noRetry, type OutboxEvent } from 'postbox'
import { expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector } from '../support/signals.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

/** What ends a delivery: each one that was dispatched must end in exactly one of these. */
const isEnd = (event: OutboxEvent): boolean =>
  ['acked', 'retried', 'snoozed', 'released', 'dead', 'lease_lost'].includes(event.kind) ||
  (event.kind === 'settle_failed' && event.delayMs === null)

test('a message is told of from its publishing to its end, by queue, handler and id', async () => {
  const outbox = outboxOf()
  outbox.subscribe('orders', function ship() {})
  const receipt = await outbox.publishNow('orders', 'x')
  await outbox.drain()

  const about = {
    queue: 'orders',
    handler: 'ship',
    id: receipt.id,
    seq: receipt.seq,
    attempt: 1,
    deliveries: 1,
  }
  expect(outbox.told.events.all.filter(({ kind }) => kind !== 'claimed')).toEqual([
    { kind: 'published', queue: 'orders', count: 1, bytes: 1, durationMs: expect.any(Number) },
    { kind: 'dispatched', ...about, bytes: 1, isSuspect: false },
    { kind: 'acked', ...about, durationMs: expect.any(Number), followOns: 0 },
  ])
  const counts = outbox.told.of('claimed').map(({ count, handler, queue }) => ({ count, handler, queue }))
  expect(counts).toContainEqual({ count: 1, handler: 'ship', queue: 'orders' })
  expect(counts).toContainEqual({ count: 0, handler: 'ship', queue: 'orders' })
})

test('whatever becomes of messages, each that is dispatched ends in exactly one event', async () => {
  const outbox = outboxOf()
  outbox.subscribe(
    'orders',
    async ({ body, id }, context) => {
      const n = Number(body)
      if (n % 7 === 0) context.reject('no')
      if (n % 7 === 1) context.snooze(3_600_000)
      if (n % 7 === 2) context.retry({ afterMs: 3_600_000 })
      if (n % 7 === 3) throw new Error('no')
      if (n % 7 === 4) await context.publish('emails', n)
      if (n % 7 === 5)
        await database.query(
          `update outbox set lease_token = gen_random_uuid(), leased_until = now() + interval '1 h' where id = $1`,
          [id],
        )
    },
    { retry: noRetry(), concurrency: 20 },
  )
  await inTransaction(bench.pool(), (tx) => outbox.publishMany(tx, 'orders', upTo(70)))
  const running = await outbox.start()
  await outbox.told.events.find(() => outbox.told.events.all.filter(isEnd).length >= 70)
  await running.stop()
  await database.query('update outbox set lease_token = null, leased_until = null')

  const ends = outbox.told.events.all.filter(isEnd).map((event) => ('id' in event ? event.id : ''))
  expect(ends).toHaveLength(70)
  expect(new Set(ends).size).toBe(70)
  expect(outbox.told.of('dispatched')).toHaveLength(70)
  const kinds = (['acked', 'retried', 'snoozed', 'dead', 'lease_lost', 'dlq_written'] as const).map(
    (kind) => [kind, outbox.told.of(kind).length] as const,
  )
  expect(Object.fromEntries(kinds)).toEqual({
    acked: 20,
    // What asks for a retry without policy left is dead, like what failed.
    retried: 0,
    snoozed: 10,
    dead: 30,
    lease_lost: 10,
    dlq_written: 30,
  })
  expect(await dead()).toHaveLength(30)
  expect(await messages()).toHaveLength(30)
})

test('whoever hears and throws, or never answers, changes nothing', async () => {
  const log = collector<LogEntry>('log entries')
  let heard = 0
  const outbox = outboxOf({
    logger: log.add,
    onEvent: () => {
      if (++heard % 2 === 0) throw new Error('not listening')
      return Promise.reject(new Error('nor later'))
    },
  })
  outbox.subscribe('orders', () => {})
  await outbox.publishNow('orders', 1)
  const drained = await outbox.drain()

  expect(drained).toMatchObject({ acked: 1 })
  expect(heard).toBeGreaterThan(3)
  expect(log.all).not.toEqual([])
  expect(log.all.every(({ level, message }) => level === 'warn' && message.includes('onEvent'))).toBe(true)
})

test('what is dead is one line of the log at level error, without the values of headers', async () => {
  const log = collector<LogEntry>('log entries')
  const outbox = outboxOf({ logger: log.add })
  outbox.subscribe('orders', (_, { reject }) => reject('sold out'), { name: 'ship' })
  const { id } = await outbox.publishNow('orders', 1, {
    headers: { token: 'secret', type: 'placed' },
    key: 'k-1',
  })
  await outbox.drain()

  expect(log.all).toMatchObject([
    {
      level: 'error',
      event: 'dead',
      fields: { queue: 'orders', handler: 'ship', id, key: 'k-1', reason: 'rejected', attempts: 1 },
    },
  ])
  expect(JSON.stringify(log.all)).not.toContain('secret')
})

test('context.log writes to the log with the message’s name on it', async () => {
  const log = collector<LogEntry>('log entries')
  const outbox = outboxOf({ logger: log.add })
  outbox.subscribe('orders', (_, context) => context.log.info('packing', { box: 3 }), { name: 'ship' })
  const { id } = await outbox.publishNow('orders', 1)
  await outbox.drain()

  expect(log.all).toEqual([
    {
      level: 'info',
      message: 'packing',
      fields: { handler: 'ship', queue: 'orders', id, attempt: 1, box: 3 },
    },
  ])
})
