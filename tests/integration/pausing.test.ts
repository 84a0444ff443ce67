// Pausing a queue, as several processes see it. What is stored, and what every store does, is in ../conformance/store-pausing.ts.
import type pg from 'pg'
import { constant, createOutbox, type Outbox, type OutboxEvent } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { type FakeClock, fakeClock, loopsSleep } from '../support/fake-clock.ts'
import { collector, eventually, signal } from '../support/signals.ts'
import { type Statements, watchStatements } from '../support/statements.ts'

const database = useDatabase()
const internals = Symbol.for('postbox.internals')
// Nobody polls during a test: what is found was announced, or is looked for because of a pause.
const never = { min: 3_600_000, max: 3_600_000 }
const by = 'jo'
let operator: Outbox

beforeAll(async () => {
  operator = createOutbox({ database: database.pool(), schema: database.schema, logger: false })
  await operator.migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
  await database.query('delete from outbox_queues')
})

interface Process {
  readonly outbox: Outbox
  readonly clock: FakeClock
  readonly statements: Statements
  readonly events: readonly OutboxEvent[]
  /** So many events of the kind have been told. */
  of(kind: OutboxEvent['kind'], count?: number): Promise<unknown>
}

/** An outbox as if in a process of its own: with its own pool, and a clock that the test moves. */
function processOf(options: object = {}, poolOptions: pg.PoolConfig = {}): Process {
  const pool = database.pool(poolOptions)
  const clock = fakeClock()
  const events = collector<OutboxEvent>('events')
  const defaults = { pollMs: never, retry: constant({ delayMs: 1, jitter: 'none' }) }
  const own = { database: pool, schema: database.schema, logger: false, onEvent: events.add, defaults }
  const outbox = createOutbox({ ...own, [internals]: { clock }, ...options } as never) as Outbox
  onTestFinished(async () => {
    await outbox.stop()
    await pool.end()
  })
  const of: Process['of'] = (kind, count = 1) =>
    eventually(() => events.all.filter((event) => event.kind === kind).length >= count, {
      what: `${count} ${kind}`,
    })
  return { outbox, clock, statements: watchStatements(pool, database.schema), events: events.all, of }
}

/** It listens, publishers notify it, and its three loops sleep. */
const liesStill = ({ statements, clock }: Process): Promise<unknown> =>
  eventually(() => statements.named('lie_down').some(({ rows }) => rows) && loopsSleep(clock), {
    what: 'the outbox to sleep',
  })

/** Two loops sleep, and nobody listens. */
const isStill = ({ clock }: Process): Promise<unknown> =>
  eventually(() => clock.left.length === 2, { what: 'the outbox to sleep' })

/** A handler that is busy with its first message until the gate opens, and three more that wait for it. */
async function busy(process: Process) {
  const gate = signal('the gate')
  const started = collector<unknown>('started handlers')
  const handle = async ({ body }: { body: unknown }) => {
    started.add(body)
    if (body === 1) await gate.wait()
  }
  process.outbox.subscribe('orders', handle, { concurrency: 1, prefetch: 3, leaseMs: 3_600_000 })
  for (const body of [1, 2, 3, 4]) await operator.publishNow('orders', body)
  await process.outbox.start()
  await started.take(1)
  onTestFinished(() => gate.send())
  return { gate, started }
}

const rows = () =>
  database.query<{ held: boolean; deliveries: number }>(
    'select lease_token is not null as held, deliveries from outbox order by seq',
  )
const free = { held: false, deliveries: 0 }

describe('a process that has claimed what it has not started', () => {
  test('hears of a pause by a notification, and gives it back: the clock stands still', async () => {
    const process = processOf()
    const { gate, started } = await busy(process)
    await eventually(() => process.outbox.health().reasons.length === 0, { what: 'an outbox that listens' })

    await operator.pause('orders', { by })
    await process.of('released', 3)

    expect(await rows()).toEqual([{ held: true, deliveries: 1 }, free, free, free])
    const [{ paused_at: at } = { paused_at: null }] = await database.query(
      'select paused_at from outbox_queues',
    )
    expect(process.events.filter(({ kind }) => kind === 'queue_paused')).toEqual([
      { kind: 'queue_paused', queue: 'orders', handler: 'handle', by, at },
    ])
    gate.send()
    await process.of('acked')
    expect(started.all).toEqual([1])
  })

  test('hears of it within a second when it is deaf, and of its end', async () => {
    const process = processOf({ wake: 'poll' })
    const { gate, started } = await busy(process)
    await isStill(process)
    await operator.pause('orders', { by })
    process.clock.advance(899)
    await isStill(process)
    expect(process.statements.named('read_pauses')).toEqual([])

    process.clock.advance(1)
    await process.of('released', 3)
    gate.send()
    await process.of('acked')
    await operator.resume('orders', { by: 'ann' })
    await isStill(process)
    expect(started.all).toEqual([1])
    process.clock.advance(900)
    await process.of('acked', 4)

    expect(started.all.toSorted()).toEqual([1, 2, 3, 4])
    expect(process.events).toContainEqual(
      expect.objectContaining({ kind: 'queue_resumed', by: 'ann', at: expect.any(Date) }),
    )
  })

  test('hears of it within a second when it listens and nobody has told it', async () => {
    const process = processOf()
    await busy(process)
    await eventually(() => process.clock.left.length === 3, { what: 'the outbox to sleep' })
    await database.query(`insert into outbox_queues (name, paused_at) values ('orders', now())`)
    process.clock.advance(900)
    await process.of('released', 3)

    expect(process.events).toContainEqual(expect.objectContaining({ kind: 'queue_paused', by: null }))
  })

  test('asks at most once a second, and no more when nothing waits', async () => {
    const process = processOf({ wake: 'poll' })
    const { gate } = await busy(process)
    for (let tenth = 0; tenth < 45; tenth++) {
      await isStill(process)
      process.clock.advance(100)
    }
    await isStill(process)
    expect(process.statements.named('read_pauses')).toHaveLength(5)
    gate.send()
    await process.of('acked', 4)
    await isStill(process)
    process.statements.clear()
    process.clock.advance(60_000)
    await isStill(process)

    expect(process.statements.named('read_pauses')).toEqual([])
  })

  test('goes on with the other queues of the same subscription', async () => {
    const process = processOf()
    const got = collector<string>('bodies')
    const gate = signal('the gate')
    onTestFinished(() => gate.send())
    process.outbox.subscribe(
      ['orders', 'mails'],
      async ({ queue, body }) => {
        got.add(`${queue} ${body}`)
        if (body === 1 && queue === 'orders') await gate.wait()
      },
      { concurrency: 1, prefetch: 10 },
    )
    await operator.publishNow('orders', 1)
    await process.outbox.start()
    await got.take(1)
    for (const queue of ['orders', 'mails', 'orders', 'mails']) await operator.publishNow(queue, 2)
    await eventually(async () => (await rows()).every(({ held }) => held), { what: 'five claimed messages' })

    await operator.pause('orders', { by })
    await process.of('released', 2)
    gate.send()
    await process.of('acked', 3)

    expect(got.all).toEqual(['orders 1', 'mails 2', 'mails 2'])
    expect(await rows()).toEqual([free, free])
  })
})

describe('a paused queue', () => {
  test('is left alone by every process, those that start later included, until it is resumed: then all of it is delivered once', async () => {
    const got = collector<unknown>('bodies')
    const both = [processOf(), processOf()]
    for (const { outbox } of both) outbox.subscribe('orders', ({ body }) => got.add(body))
    await both[0]!.outbox.start()
    await liesStill(both[0]!)
    await operator.pause('orders', { by })
    await both[0]!.of('queue_paused')
    await both[1]!.outbox.start()
    await both[1]!.of('queue_paused')
    for (let body = 0; body < 50; body++) await operator.publishNow('orders', body)
    for (const process of both) await process.outbox.stop()
    for (const process of both) await process.outbox.start()
    for (const process of both) await process.of('queue_paused', 2)
    const before = [...got.all]

    await operator.resume('orders', { by })
    await got.take(50)
    for (const { outbox } of both) await outbox.drain()

    expect(before).toEqual([])
    expect(got.all.toSorted((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 50 }, (_, n) => n))
  })

  test('has its retries wait, that of a handler that ran when it was paused included', async () => {
    const process = processOf()
    const gate = signal('the gate')
    onTestFinished(() => gate.send())
    const attempts = collector<number>('attempts')
    process.outbox.subscribe('orders', async ({ attempt }) => {
      attempts.add(attempt)
      if (attempt === 1) await gate.wait().then(() => Promise.reject(new Error('no')))
    })
    await operator.publishNow('orders', 1)
    await process.outbox.start()
    await attempts.take(1)
    await operator.pause('orders', { by })
    await process.of('queue_paused')
    gate.send()
    await process.of('retried')
    await eventually(
      async () => (await database.query('select 1 from outbox where due_at < now()')).length === 1,
      { what: 'the retry to be due' },
    )
    // Whatever would wake it does.
    process.clock.advance(60_000)
    await eventually(() => process.statements.named('read_pauses').length > 1, { what: 'a look' })
    const before = [...attempts.all]

    await operator.resume('orders', { by })
    await process.of('acked')

    expect([before, attempts.all]).toEqual([[1], [1, 2]])
  })

  test('costs a sleeping process a statement a second, and nothing when it is published to', async () => {
    const process = processOf({ defaults: { pollMs: { min: 20, max: 5_000 } } })
    for (let n = 0; n < 20; n++) process.outbox.subscribe(`queue ${n}`, () => {})
    await process.outbox.start()
    await liesStill(process)
    await operator.pause('queue 7', { by })
    await process.of('queue_paused')
    await eventually(() => process.statements.named('get_up').some(({ rows }) => rows), {
      what: 'it to get up',
    })
    await eventually(() => process.clock.left.length === 3, { what: 'the outbox to sleep' })
    process.statements.clear()

    for (let n = 0; n < 20; n++) await operator.publishNow('queue 7', n)
    const start = process.clock.now()
    while (process.clock.now() < start + 60_000) {
      process.clock.advance(Math.min(process.clock.left[0]!, start + 60_000 - process.clock.now()))
      await eventually(() => process.clock.left.length === 3, { what: 'the three loops to sleep again' })
    }

    const { read_pauses, claim_messages, ...others } = process.statements.counts()
    expect(others).toEqual({ send_word: 2 })
    expect(claim_messages).toBe(12)
    expect(read_pauses).toBeLessThanOrEqual(60)
    expect(await rows()).toHaveLength(20)
  })

  test('keeps what else is said of it', async () => {
    await database.query(`insert into outbox_queues (name, message_order) values ('orders', 'key')`)
    await operator.pause('orders', { by })
    await operator.resume('orders', { by })
    await operator.pause('orders', { by: 'ann' })

    expect(
      await database.query('select name, message_order, paused_by, resumed_by from outbox_queues'),
    ).toEqual([{ name: 'orders', message_order: 'key', paused_by: 'ann', resumed_by: by }])
  })
})

describe('pause and resume', () => {
  test('of many at once are done by one, and all others are told by whom, in any isolation', async () => {
    const pool = database.pool({ options: '-c default_transaction_isolation=serializable' })
    onTestFinished(() => pool.end())
    const outbox = createOutbox({ database: pool, schema: database.schema, logger: false })
    const people = Array.from({ length: 8 }, (_, n) => `person ${n}`)

    for (let round = 0; round < 5; round++) {
      const pauses = await Promise.all(people.map((by) => outbox.pause('orders', { by })))
      const first = people[pauses.findIndex(({ paused }) => paused)]
      const told = { paused: false, because: 'already_paused', by: first, at: expect.any(Date) }
      expect(pauses.filter(({ paused }) => !paused)).toEqual(Array.from({ length: 7 }, () => told))
      const resumed = await Promise.all(people.map((by) => outbox.resume('orders', { by })))
      expect(resumed.filter(({ resumed }) => resumed)).toHaveLength(1)
    }
  })

  test('are refused where nobody could answer for them, or the queue is none', async () => {
    const { outbox } = processOf({ queues: { orders: {} } })
    const refusals: [Promise<unknown>, string][] = [
      [outbox.pause('order', { by }), 'OUTBOX_UNKNOWN_QUEUE'],
      [outbox.resume('order', { by }), 'OUTBOX_UNKNOWN_QUEUE'],
      [outbox.pause('', { by }), 'OUTBOX_INVALID_QUEUE'],
      [outbox.pause('orders', { by: ' ' }), 'OUTBOX_INVALID_OPTION'],
      [outbox.resume('orders', {} as never), 'OUTBOX_INVALID_OPTION'],
      [outbox.resume('orders', undefined as never), 'OUTBOX_INVALID_OPTION'],
      [createOutbox().pause('orders', { by }), 'OUTBOX_NO_DATABASE'],
    ]
    for (const [refused, code] of refusals) await expect(refused).rejects.toMatchObject({ code })
    expect(await database.query('select 1 from outbox_queues')).toEqual([])
  })

  test('say what to do when the tables were never made', async () => {
    const { outbox } = processOf({ table: 'never_made' })
    for (const refused of [outbox.pause, outbox.resume])
      await expect(refused('orders', { by })).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_MISSING' })
  })
})
