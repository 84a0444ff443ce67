import type pg from 'pg'
import { createOutbox, type Middleware, type Outbox, type OutboxEvent, type PublishCall } from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { collector, signal } from '../support/signals.ts'

const database = useDatabase()
let pool: pg.Pool
let client: pg.Client

beforeAll(async () => {
  pool = database.pool()
  client = await database.client()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

function outboxWith(...middleware: readonly Middleware[]): Outbox {
  return createOutbox({ database: pool, schema: database.schema, logger: false, middleware })
}

async function inTransaction<T>(work: () => Promise<T>): Promise<T> {
  await client.query('begin')
  try {
    return await work()
  } finally {
    await client.query('commit')
  }
}

/** Body → headers, in the order in which they were written. */
async function stored(): Promise<readonly (readonly [string, unknown])[]> {
  const rows = await database.query<{ body: string; headers: unknown }>(
    `select convert_from(body, 'utf8') as body, headers from outbox order by seq`,
  )
  return rows.map(({ body, headers }) => [body, headers])
}

describe('publish middleware', () => {
  test('is called once for every call that publishes, whatever its way', async () => {
    const calls: PublishCall[] = []
    const outbox = outboxWith({
      publish: (call, next) => {
        calls.push(call)
        return next()
      },
    })
    await outbox.publishNow('orders', 1)
    await inTransaction(async () => {
      await outbox.publish(client, 'orders', 2)
      await outbox.publishMany(client, 'orders', [3, 4])
      await outbox.publishMany(client, 'orders', [])
      await outbox.in(client).publish('orders', 5)
      await outbox.within(client, () => outbox.current.publishMany('orders', [6]))
    })

    expect(calls.map(({ bodies }) => bodies)).toEqual([[1], [2], [3, 4], [], [5], [6]])
    expect(new Set(calls.map(({ queue }) => queue))).toEqual(new Set(['orders']))
    expect((await stored()).map(([body]) => body)).toEqual(['1', '2', '3', '4', '5', '6'])
  })

  test('adds headers to every message of a call, and each keeps its own', async () => {
    const outbox = outboxWith(
      { publish: (_, next) => next({ trace: 'outer', tenant: 'outer' }) },
      { publish: (_, next) => next({ trace: 'inner', span: '1' }) },
    )
    const headersOf = (body: unknown) => (body === 1 ? { headers: { tenant: 'own' } } : { headers: {} })
    await inTransaction(() => outbox.publishMany(client, 'orders', [1, 2], headersOf))

    expect(await stored()).toEqual([
      ['1', { tenant: 'own', trace: 'outer', span: '1' }],
      ['2', { tenant: 'outer', trace: 'outer', span: '1' }],
    ])
  })

  test('sees what was written, and answers the caller', async () => {
    const seen: unknown[] = []
    const outbox = outboxWith({
      publish: async (_, next) => {
        const receipts = await next()
        seen.push(...receipts)
        return receipts
      },
    })
    const receipts = await inTransaction(() =>
      outbox.publishMany(client, 'orders', [1, 2], { timerId: 'one of them' }),
    )

    expect(receipts).toEqual([{ id: expect.any(String), seq: expect.any(String) }, null])
    expect(seen).toEqual(receipts)
  })

  test('may keep a message back: nothing is written', async () => {
    const outbox = outboxWith({ publish: async ({ bodies }) => bodies.map(() => null) })
    const receipts = await inTransaction(() => outbox.publishMany(client, 'orders', [1, 2]))

    expect(receipts).toEqual([null, null])
    expect(await stored()).toEqual([])
  })

  const twice: Middleware['publish'] = (_, next) => next().then(() => next())
  test.each<[string, NonNullable<Middleware['publish']>, object, number]>([
    ['throws', () => Promise.reject(new Error('no')), { message: 'no' }, 0],
    [
      'throws afterwards',
      (_, next) => next().then(() => Promise.reject(new Error('no'))),
      { message: 'no' },
      1,
    ],
    ['calls next twice', twice, { code: 'OUTBOX_INVALID_OPTION' }, 1],
  ])(
    'that %s fails the publish, and leaves the transaction to its caller',
    async (...[, publish, error, rows]) => {
      const outbox = outboxWith({ publish })
      await inTransaction(async () => {
        await expect(outbox.publish(client, 'orders', 1)).rejects.toMatchObject(error)
        await client.query('select 1')
      })

      expect(await stored()).toHaveLength(rows)
    },
  )

  test('waits as long as it likes: the message is the one that was passed, the transaction is asked when it is written', async () => {
    const reached = signal('the middleware is reached')
    const goOn = signal('it may go on')
    const outbox = outboxWith({
      publish: async (_, next) => {
        reached.send()
        await goOn.wait()
        return next()
      },
    })
    await client.query('begin')
    const publishing = outbox.publish(client, 'orders', { orderId: 1 })
    const refused = expect(publishing).rejects.toMatchObject({ code: 'OUTBOX_NOT_IN_TRANSACTION' })
    const body = { orderId: 2 }
    const now = outbox.publishNow('orders', body)
    body.orderId = 3
    await reached.wait()
    await client.query('commit')
    goOn.send()
    await refused
    await now

    expect((await stored()).map(([text]) => text)).toEqual(['{"orderId":2}'])
  })
})

test('source is a header of every message that has none', async () => {
  const outbox = createOutbox({ database: pool, schema: database.schema, source: 'shop' })
  await outbox.publishNow('orders', 1)
  await outbox.publishNow('orders', 2, { headers: { source: 'till' } })

  expect(await stored()).toEqual([
    ['1', { source: 'shop' }],
    ['2', { source: 'till' }],
  ])
})

test('both kinds: what a publish adds, a delivery can read, and follow-ons pass through both', async () => {
  const trail = collector<string>('steps of the onion')
  const outer: Middleware = {
    publish: (call, next) => {
      trail.add(`publish ${call.queue}`)
      return next({ trace: 't1' })
    },
    consume: async (delivery, next) => {
      const [message] = delivery.messages
      trail.add(`${delivery.queue} in, trace ${message?.headers['trace']}`)
      await next()
      trail.add(`${delivery.queue} out`)
    },
  }
  const inner: Middleware = {
    consume: async (delivery, next) => {
      trail.add(`${delivery.queue} inner`)
      await next()
    },
  }
  const outbox = outboxWith(outer, inner)
  outbox.subscribe('orders', (_, context) => {
    trail.add('orders handled')
    return context.publish('emails', 1)
  })
  outbox.subscribe('emails', () => trail.add('emails handled'))
  await outbox.publishNow('orders', 1)
  const running = await outbox.start()
  await trail.find((step) => step === 'emails out')
  await running.stop()

  expect(trail.all).toEqual([
    'publish orders',
    'orders in, trace t1',
    'orders inner',
    'orders handled',
    'publish emails',
    'orders out',
    'emails in, trace t1',
    'emails inner',
    'emails handled',
    'emails out',
  ])
})

describe('the event of publishing', () => {
  // U-MET-07
  test('comes once for each statement, before the commit, with what it wrote', async () => {
    const events: OutboxEvent[] = []
    const onEvent = (event: OutboxEvent): unknown => events.push(event)
    const outbox = createOutbox({ database: pool, schema: database.schema, onEvent })
    await inTransaction(async () => {
      await outbox.publishMany(client, 'orders', ['one', 'three'])
      await outbox.publish(client, 'orders', 'x', { timerId: 't' })
      await outbox.publish(client, 'orders', 'xx', { timerId: 't' })
      expect(events).toHaveLength(3)
    })

    const event = { kind: 'published', queue: 'orders', durationMs: expect.any(Number) }
    expect(events).toEqual([
      { ...event, count: 2, bytes: 8 },
      { ...event, count: 1, bytes: 1 },
      { ...event, count: 0, bytes: 2 },
    ])
  })

  test('tells of a statement that failed', async () => {
    const events: OutboxEvent[] = []
    const onEvent = (event: OutboxEvent): unknown => events.push(event)
    const outbox = createOutbox({ database: pool, schema: database.schema, table: 'nowhere', onEvent })
    const code = 'OUTBOX_SCHEMA_MISSING'

    await expect(outbox.publishNow('orders', 'x')).rejects.toMatchObject({ code })
    expect(events).toMatchObject([{ kind: 'published', count: 0, bytes: 1, error: { code } }])
  })
})
