// ADR-054, decision by decision: what an outbox with the preset `adr054()` does on a table.
import { adr054, createOutbox, type Message, noRetry, TerminalError, typed } from 'postbox'
import { describe, expect, test } from 'vitest'
import { useBench } from '../support/decisions-bench.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

const makeDue = (): Promise<unknown> => database.query('update outbox set due_at = now()')
const withState = (code: string): Error => Object.assign(new Error(`state ${code}`), { code })
const throwing = (error: unknown) => (): never => {
  throw error
}

test('D1: with dead letters in place a failed row stays in the table of messages, with the status failed, and there is no other', async () => {
  const outbox = outboxOf({ deadLetters: 'in-place' })
  outbox.subscribe('orders', throwing(new TerminalError('no')))
  const { id } = await outbox.publishNow('orders', 1)
  await outbox.publishNow('waiting', 1)

  await outbox.drain()

  expect(await dead()).toEqual([])
  expect(await messages()).toMatchObject([{ id, failed_at: expect.any(Date) }, { queue: 'waiting' }])
  expect(await database.query('select queue, status from outbox_status order by queue')).toEqual([
    { queue: 'orders', status: 'failed' },
    { queue: 'waiting', status: 'pending' },
  ])
})

describe('D2, D3: the retry curve', () => {
  test('five retries after the first run, none later than 1, 2, 4, 8 and 16 seconds, and then the message is dead', async () => {
    const outbox = outboxOf()
    outbox.subscribe('orders', throwing(new Error('down')), { retry: adr054() })
    await outbox.publishNow('orders', 1)

    for (let run = 1; run <= 6; run++) {
      await outbox.drain()
      await makeDue()
    }

    const delays = outbox.told.of('retried').map(({ delayMs }) => delayMs)
    const most = [1_000, 2_000, 4_000, 8_000, 16_000]
    expect(delays).toHaveLength(5)
    expect(delays.filter((delayMs, nth) => delayMs < 0 || delayMs > most[nth]!)).toEqual([])
    expect(outbox.told.of('dead')).toMatchObject([{ reason: 'retry_terminal', attempts: 6 }])
    expect(await dead()).toMatchObject([
      { attempts: 6, failure_reason: 'retry_terminal', last_error: 'Error: down' },
    ])
  })

  test('jitter is full: chance 0 is at once, and no attempt waits longer than five minutes', () => {
    const at = { error: null, firstAttemptAt: new Date(0), lastAttemptAt: new Date(0) }
    const most = [1, 2, 3, 4, 5].map((attempt) => adr054()({ ...at, attempt, random: () => 0.999_999 }))

    expect([1, 2, 3, 4, 5].map((attempt) => adr054()({ ...at, attempt, random: () => 0 }))).toEqual([
      0, 0, 0, 0, 0,
    ])
    expect(most.map((delayMs) => Math.round(delayMs ?? 0))).toEqual([1_000, 2_000, 4_000, 8_000, 16_000])
  })

  test('a handler may have a policy of its own', async () => {
    const outbox = outboxOf({ defaults: { retry: adr054() } })
    outbox.subscribe('orders', throwing(new Error('down')), { retry: noRetry() })
    outbox.subscribe('emails', throwing(new Error('down')))
    for (const queue of ['orders', 'emails']) await outbox.publishNow(queue, 1)

    await outbox.drain()

    expect(outbox.told.of('dead')).toMatchObject([{ queue: 'orders' }])
    // One may come back before the drain has ended: its jitter is full.
    expect(outbox.told.of('retried')[0]).toMatchObject({ queue: 'emails' })
  })
})

describe('D4: the classifier', () => {
  class NoSuchCustomer extends TerminalError {}
  class SoldOut extends Error {}

  const endOf = async (error: unknown, options: object = {}): Promise<string> => {
    const outbox = outboxOf({ defaults: { retry: adr054() } })
    outbox.subscribe('orders', throwing(error), options)
    await outbox.publishNow('orders', 1)
    await outbox.drain()
    return outbox.told.of('dead')[0]?.reason ?? outbox.told.of('retried')[0]?.kind ?? 'neither'
  }

  test.each([
    ['a violated constraint', withState('23505')],
    ['data that Postgres refuses', withState('22P02')],
    ['an explicit terminal error', new TerminalError('no')],
    ['a subclass of it', new NoSuchCustomer('no')],
    [
      'a violated constraint below the error of an ORM',
      new Error('query failed', { cause: withState('23503') }),
    ],
  ])('%s is terminal at once', async (_, error) => {
    expect(await endOf(error)).toBe('terminal_error')
  })

  test.each([
    ['a lost connection', withState('08006')],
    ['a refused connection', Object.assign(new Error('no'), { code: 'ECONNREFUSED' })],
    ['a timeout', new DOMException('too slow', 'TimeoutError')],
    ['a cancelled statement', withState('57014')],
    ['a serialisation failure', withState('40001')],
    ['a deadlock', withState('40P01')],
    ['anything else', new Error('whatever')],
    ['what is no error', 'whatever'],
  ])('%s is tried again', async (_, error) => {
    expect(await endOf(error)).toBe('retried')
  })

  test('a handler may name other errors as terminal', async () => {
    expect(await endOf(new SoldOut(), { terminalErrors: [SoldOut] })).toBe('terminal_error')
    expect(await endOf(new SoldOut())).toBe('retried')
  })

  test('a body that its schema refuses is terminal, and its handler not run', async () => {
    const never = {
      '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'no' }] }) },
    }
    const strict = outboxOf({ queues: { orders: { body: never as never } } })
    strict.subscribe('orders', () => expect.unreachable(), { retry: adr054() })
    const lax = {
      database: bench.pool(),
      schema: database.schema,
      queues: { orders: { body: typed<number>() } },
    }
    await createOutbox(lax).publishNow('orders', 1)

    await strict.drain()

    expect(strict.told.of('dead')).toMatchObject([{ reason: 'invalid_body' }])
  })
})

test('D5: a replay keeps the id, takes the cycle into the history, clears it and sets the generation, at once', async () => {
  const [old, young] = [outboxOf({ generation: 1 }), outboxOf({ generation: 2 })]
  const runs: Message[] = []
  old.subscribe('orders', throwing(new TerminalError('no such customer')))
  young.subscribe('orders', (message) => runs.push(message))
  const { id } = await old.publishNow('orders', 1, { headers: { 'idempotency-key': 'order-1' } })
  await old.drain()

  expect(await old.deadLetters.replay(id, { by: 'sql-direct', generation: 2 })).toEqual({
    replayed: true,
    lands: 'anywhere',
  })

  expect(await messages()).toMatchObject([
    {
      ...{
        id,
        attempts: 0,
        deliveries: 0,
        last_error: null,
        first_attempt_at: null,
        generation: '2',
        failed_at: null,
      },
      failure_history: {
        dropped: 0,
        cycles: [
          {
            ...{ attempts: 1, reason: 'terminal_error', error: 'TerminalError: no such customer' },
            ...{ replayedBy: 'sql-direct', generationBefore: 1, generationAfter: 2 },
          },
        ],
      },
    },
  ])
  expect(await old.drain()).toMatchObject({ acked: 0, dead: 0 })
  expect(await young.drain()).toMatchObject({ acked: 1 })
  expect(runs).toMatchObject([{ id, attempt: 1, headers: { 'idempotency-key': 'order-1' } }])
})

test('D5: the same by SQL, with arguments that say everything: one event goes back to pending, with its cycle in its history', async () => {
  const outbox = outboxOf({ deadLetters: 'in-place', generation: 1 })
  outbox.subscribe('orders', throwing(new TerminalError('no')))
  const { id } = await outbox.publishNow('orders', 1)
  await outbox.drain()

  const replay = 'select outbox_replay(event_id => $1, p_new_generation => 2, p_replayed_by => $2) as answer'
  expect(await database.query(replay, [id, 'sql-direct'])).toEqual([{ answer: 'replayed' }])

  expect(await database.query('select status, generation, attempts, last_error from outbox_status')).toEqual([
    { status: 'pending', generation: '2', attempts: 0, last_error: null },
  ])
  const [row] = await messages()
  expect(row?.['failure_history']).toMatchObject({
    cycles: [{ attempts: 1, replayedBy: 'sql-direct', generationBefore: 1, generationAfter: 2 }],
  })
})

test('D6: an operator lists what failed, looks at one, and replays it', async () => {
  const outbox = outboxOf()
  let isMended = false
  outbox.subscribe('orders', () => {
    if (!isMended) throw new TerminalError('broken')
  })
  const { id } = await outbox.publishNow('orders', { orderId: 1 })
  await outbox.drain()
  isMended = true

  expect(await outbox.deadLetters.list({ queue: 'orders' })).toMatchObject({
    items: [{ id, reason: 'terminal_error' }],
  })
  expect(await outbox.deadLetters.get(id)).toMatchObject({ body: { orderId: 1 }, attempts: 1 })
  await outbox.deadLetters.replay(id, { by: 'ann@example.org' })
  expect(await outbox.drain()).toMatchObject({ acked: 1 })
  expect(await outbox.deadLetters.count()).toEqual({ count: 0, atLeast: false })
})

test.each([
  ['is classified as terminal', new TerminalError('no'), { reason: 'terminal_error', attempts: 1 }],
  ['has used its retries up', new Error('no'), { reason: 'retry_terminal', attempts: 1 }],
])('D7: what %s is told once, with all that the alert has to say', async (_, error, ending) => {
  const outbox = outboxOf({ source: 'shop' })
  outbox.subscribe('orders', throwing(error), { name: 'shipOrder', retry: noRetry() })
  const headers = { type: 'order.placed', target: 'warehouse' }
  const { id } = await outbox.publishNow('orders', 1, { headers })
  await outbox.drain()

  expect(outbox.told.of('dead')).toMatchObject([
    { id, type: 'order.placed', source: 'shop', target: 'warehouse', handler: 'shipOrder', error, ...ending },
  ])
})

test('D8: what was handled before is not done again when it is replayed, because the id is the same', async () => {
  await database.query('create table shipped (order_id int)')
  const outbox = outboxOf()
  let isAnnounced = false
  outbox.subscribe(
    'orders',
    async ({ id, body }) => {
      const client = await bench.pool().connect()
      await client.query('begin')
      await outbox.inbox.once(client, { consumer: 'shipping', id }, () =>
        client.query('insert into shipped values ($1)', [body]),
      )
      await client.query('commit')
      client.release()
      if (!isAnnounced) throw new Error('it was shipped, and nobody could be told')
    },
    { retry: noRetry() },
  )
  const { id } = await outbox.publishNow('orders', 7)
  await outbox.drain()
  isAnnounced = true
  await outbox.deadLetters.replay(id, { by: 'ann' })

  expect(await outbox.drain()).toMatchObject({ acked: 1 })
  expect(await database.query('select order_id from shipped')).toEqual([{ order_id: 7 }])
})
