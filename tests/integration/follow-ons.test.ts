import { type Context, constant, createOutbox, type Message, noRetry } from 'postbox'
import { describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'
import { inTransaction } from '../support/in-transaction.ts'
import { collector, signal } from '../support/signals.ts'
import { watchStatements } from '../support/statements.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

type Handle = (message: Message, context: Context) => unknown

async function deliver(handler: Handle, options: object = {}) {
  const outbox = outboxOf()
  outbox.subscribe('orders', handler, options)
  await outbox.publishNow('orders', 1, { headers: { tenant: 'a', origin: 'web' }, correlationId: 'c-1' })
  await outbox.drain()
  return { told: outbox.told, rows: await messages() }
}

describe('what a handler publishes by its context', () => {
  test('is written by the statement that deletes its message', async () => {
    const pool = database.pool({ max: 5 })
    const statements = watchStatements(pool, database.schema)
    const outbox = outboxOf({ database: pool })
    outbox.subscribe('orders', async (_, context) => {
      await context.publish('emails', 'first')
      void context.publish('invoices', 'second', { delayMs: 60_000, key: 'k' })
    })
    await outbox.publishNow('orders', 1)
    await outbox.drain()
    await pool.end()

    expect(statements.named('delete_with_follow_ons')).toHaveLength(1)
    expect(statements.named('delete_acked')).toEqual([])
    expect(await messages()).toMatchObject([
      { queue: 'emails', due_at: null, key: null },
      { queue: 'invoices', due_at: expect.any(Date), key: 'k' },
    ])
  })

  test.for([
    ['fails', () => expect.fail('no')],
    ['rejects it', (_, { reject }) => reject()],
    ['snoozes it', (_, { snooze }) => snooze(60_000)],
    ['retries it', (_, { retry }) => retry({ afterMs: 60_000 })],
  ] as readonly (readonly [string, Handle])[])('is dropped when it %s', async ([, decide]) => {
    const { rows } = await deliver((message, context) => {
      void context.publish('emails', 1)
      return decide(message, context)
    })

    expect(rows.filter((row) => row['queue'] === 'emails')).toEqual([])
  })

  test('carries on the correlation id, and the headers that are to be propagated', async () => {
    const all = await deliver((_, { publish }) => publish('emails', {}, { headers: { origin: 'shop' } }), {
      propagateHeaders: true,
    })
    await database.query('delete from outbox')
    const one = await deliver((_, { publish }) => publish('emails', 'text', { correlationId: 'own' }), {
      propagateHeaders: ['Tenant'],
    })
    await database.query('delete from outbox')
    const none = await deliver((_, { publish }) => publish('emails', {}))

    expect(all.rows).toMatchObject([{ headers: { tenant: 'a', origin: 'shop', 'correlation-id': 'c-1' } }])
    expect(one.rows[0]?.['headers']).toEqual({
      tenant: 'a',
      'correlation-id': 'own',
      'content-type': 'text/plain; charset=utf-8',
    })
    expect(none.rows[0]?.['headers']).toEqual({ 'correlation-id': 'c-1' })
  })

  test('fails the delivery when it is refused, though the handler has not waited for it', async () => {
    const { rows, told } = await deliver((_, { publish }) => void publish('emails', Number.NaN), {
      retry: constant({ delayMs: 3_600_000 }),
    })

    expect(rows).toMatchObject([{ queue: 'orders', attempts: 1 }])
    expect(rows[0]?.['last_error']).toMatch(/^OutboxError: the body for queue "emails" is not valid/)
    expect(told.of('acked')).toEqual([])
  })

  test('is refused when the handler has ended', async () => {
    const late = signal<Context>('the context')
    await deliver((_, context) => late.send(context))
    const context = await late.wait()

    await expect(context.publish('emails', 1)).rejects.toMatchObject({ code: 'OUTBOX_DELIVERY_OVER' })
    expect(await messages()).toEqual([])
  })
})

describe('follow-on messages that the table refuses', () => {
  test('make a failure of their own message, which is told, and not of its neighbours', async () => {
    await database.query(`alter table outbox add constraint good check (queue <> 'bad')`)
    try {
      const outbox = outboxOf()
      outbox.subscribe('orders', ({ body }, { publish }) => publish(body === 7 ? 'bad' : 'emails', body), {
        retry: noRetry(),
        concurrency: 50,
      })
      await inTransaction(bench.pool(), (tx) =>
        outbox.publishMany(
          tx,
          'orders',
          Array.from({ length: 20 }, (_, n) => n),
        ),
      )
      const drained = await outbox.drain()

      expect(drained).toMatchObject({ acked: 19, dead: 1 })
      expect(await messages()).toHaveLength(19)
      expect(await dead()).toMatchObject([{ failure_reason: 'terminal_error', attempts: 1 }])
      expect(outbox.told.of('follow_on_failed')).toMatchObject([
        { queue: 'orders', error: { code: '23514' } },
      ])
    } finally {
      await database.query('alter table outbox drop constraint good')
    }
  })
})

describe('a lease that was lost while the handler ran', () => {
  const steal = () =>
    database.query(`update outbox set lease_token = gen_random_uuid(), leased_until = now() + interval '1 h'`)

  test.for([
    ['acknowledges', 'terminal', (_, { ack }) => ack()],
    ['rejects', 'terminal', (_, { reject }) => reject()],
    ['retries', 'retry', (_, { retry }) => retry()],
    ['snoozes', 'retry', (_, { snooze }) => snooze(5)],
  ] as readonly (readonly [string, string, Handle])[])(
    'writes neither delete nor dead letter nor follow-on, whether it %s or not',
    async ([, phase, decide]) => {
      const outbox = outboxOf()
      outbox.subscribe('orders', async (message, context) => {
        await context.publish('emails', 1)
        await steal()
        return decide(message, context)
      })
      await outbox.publishNow('orders', 1)
      const [before] = await messages()
      await using running = await outbox.start()
      const lost = await outbox.told.first('lease_lost')
      await running.stop()
      const after = await messages()
      await database.query('update outbox set lease_token = null, leased_until = null')

      expect(lost).toMatchObject({
        phase,
        queue: 'orders',
        id: before?.['id'],
        deliveries: 1,
        mayHaveLanded: false,
      })
      expect(after).toMatchObject([
        { ...before, deliveries: 1, lease_token: expect.any(String), leased_until: expect.any(Date) },
      ])
      expect(await dead()).toEqual([])
      expect(outbox.told.events.all.map(({ kind }) => kind)).not.toContain('acked')
    },
  )
})

describe('a timer', () => {
  test('is armed anew by its own handler, with its acknowledgement', async () => {
    const runs = collector<string>('runs')
    const outbox = outboxOf()
    outbox.subscribe('ticks', async ({ body }, { publish }) => {
      runs.add(String(body))
      if (body !== 3) await publish('ticks', Number(body) + 1, { timerId: 'tick', delayMs: 5 })
    })
    await using _running = await outbox.start()
    await outbox.publishNow('ticks', 1, { timerId: 'tick', delayMs: 5 })

    expect(await runs.take(3)).toEqual(['1', '2', '3'])
    await outbox.told.take('acked', 3)
    expect(await messages()).toEqual([])
  })

  test('is armed anew by its own handler, in a transaction of the handler’s', async () => {
    const runs = collector<string>('runs')
    const receipts = collector<unknown>('receipts')
    const outbox = outboxOf()
    outbox.subscribe('ticks', async ({ body }) => {
      runs.add(String(body))
      if (body === 3) return
      const next = { timerId: 'tick', delayMs: 5 }
      receipts.add(
        await inTransaction(bench.pool(), (tx) => outbox.publish(tx, 'ticks', Number(body) + 1, next)),
      )
    })
    await using _running = await outbox.start()
    await outbox.publishNow('ticks', 1, { timerId: 'tick', delayMs: 5 })

    expect(await runs.take(3)).toEqual(['1', '2', '3'])
    expect(receipts.all).not.toContain(null)
    await outbox.told.take('acked', 3)
  })
})

test('an outbox without subscribers of a queue still publishes follow-ons to it, typed by its map', async () => {
  const outbox = createOutbox({
    database: bench.pool(),
    schema: database.schema,
    logger: false,
    queues: { orders: {}, emails: {} },
  })
  outbox.subscribe('orders', (_, { publish }) => publish('emails', 'x'))
  await outbox.publishNow('orders', 1)
  await outbox.drain()

  expect(await messages()).toMatchObject([{ queue: 'emails' }])
})
