import { setTimeout as wait } from 'node:timers/promises'
import type pg from 'pg'
import { createOutbox, type LogEntry, type Outbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { type FakeClock, fakeClock, loopsSleep } from '../support/fake-clock.ts'
import { collector, eventually, signal } from '../support/signals.ts'
import { type Statements, watchStatements } from '../support/statements.ts'

const database = useDatabase()
const internals = Symbol.for('postbox.internals')
// Nobody polls during a test: what is found was announced.
const never = { min: 3_600_000, max: 3_600_000 }

beforeAll(async () => {
  await createOutbox({ database: database.pool({ max: 1 }), schema: database.schema }).migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

interface Watched {
  readonly outbox: Outbox
  readonly pool: pg.Pool
  readonly statements: Statements
  readonly log: readonly LogEntry[]
}

/** An outbox on a pool of its own, every statement of which is written down. */
function watched(options: object = {}, poolOptions: pg.PoolConfig = {}): Watched {
  const pool = database.pool(poolOptions)
  onTestFinished(async () => {
    if (!pool.ending) await pool.end()
  })
  const log: LogEntry[] = []
  const logger = (entry: LogEntry): void => void log.push(entry)
  const outbox = createOutbox({ database: pool, schema: database.schema, logger, ...options })
  return { outbox, pool, statements: watchStatements(pool, database.schema), log }
}

const fill = (count: number, queue = 'orders'): Promise<unknown> =>
  database.query(
    `insert into outbox (id, queue, body) select gen_random_uuid(), $2, '1' from generate_series(1, $1)`,
    [count, queue],
  )

const isEmpty = async (): Promise<boolean> => (await database.query('select 1 from outbox')).length === 0

/** It listens, publishers notify it, and its three loops sleep: engine, lease keeper and heartbeat. Nothing is under way. */
const liesStill = (statements: Statements, clock: FakeClock): Promise<unknown> =>
  eventually(() => statements.named('lie_down').some(({ rows }) => rows) && loopsSleep(clock), {
    what: 'the outbox to sleep',
  })

/** Lets so much time pass, from one end of a sleep to the next. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  const end = clock.now() + ms
  while (clock.now() < end) {
    clock.advance(Math.min(clock.left[0] ?? ms, end - clock.now()))
    await eventually(() => loopsSleep(clock), { what: 'the three loops to sleep again' })
  }
}

describe('what a message costs', () => {
  test('ten thousand waiting messages take at most five hundred claims and deletes together', async () => {
    const { outbox, statements } = watched()
    outbox.subscribe('orders', () => {}, { concurrency: 50 })
    await fill(10_000)

    const drained = await outbox.drain()

    expect(drained).toEqual({ acked: 10_000, retried: 0, snoozed: 0, dead: 0, lost: 0, isEmpty: true })
    const { claim_messages, delete_acked } = statements.counts()
    expect(claim_messages! + delete_acked!).toBeLessThanOrEqual(500)
  })

  test('claims stay large while what became of messages is written slowly', async () => {
    const { outbox, statements } = watched()
    await database.query(`create function slow() returns trigger language plpgsql as
      'begin perform pg_sleep(0.02); return null; end'`)
    await database.query(
      'create trigger slow after delete on outbox for each statement execute function slow()',
    )
    onTestFinished(async () => void (await database.query('drop function slow cascade')))
    outbox.subscribe('orders', () => new Promise((resolve) => setImmediate(resolve)), { concurrency: 50 })
    await fill(5_000)

    await outbox.drain()

    const claims = statements.named('claim_messages').filter(({ rows }) => rows!.length > 1)
    expect(5_000 / claims.length).toBeGreaterThan(100)
  })

  test('claims wait until half of what was claimed ahead is used up', async () => {
    const { outbox, statements } = watched()
    // Slower than a claim, so that claims could follow each freed slot.
    outbox.subscribe('orders', () => wait(1), { concurrency: 1, prefetch: 100 })
    await fill(1_000)

    await outbox.drain()

    // But for sweeps: one that came back full is repeated, whatever room there is.
    const claims = statements.named('claim_messages').map(({ values }) => JSON.parse(String(values[0]))[0])
    const rooms = claims.filter(({ sweep }) => !sweep).map(({ room }) => room)
    expect(rooms.length).toBeGreaterThan(0)
    expect(rooms.filter((room) => room < 50)).toEqual([])
  })

  test('an idle minute of an outbox with twenty queues takes at most sixty statements', async () => {
    const clock = fakeClock()
    const { outbox, statements } = watched({ [internals]: { clock } })
    for (let queue = 0; queue < 20; queue++) outbox.subscribe(`queue ${queue}`, () => {})
    await using _running = await outbox.start()
    await liesStill(statements, clock)
    statements.clear()

    await pass(clock, 60_000)

    expect(clock.now()).toBe(60_000)
    expect(statements.counts()).toEqual({ claim_messages: 12, send_word: 2 })
  })

  test('a message that comes while the outbox sleeps takes the least claim, the claim that learns all the rest, one delete and nothing else', async () => {
    const clock = fakeClock()
    const { outbox, statements } = watched({ [internals]: { clock } })
    const publisher = watched().outbox
    outbox.subscribe('orders', () => {}, { pollMs: never })
    await using _running = await outbox.start()
    await liesStill(statements, clock)
    statements.clear()

    for (let count = 1; count <= 20; count++) {
      await publisher.publishNow('orders', count)
      await eventually(() => statements.named('delete_acked')[count - 1]?.rows, { what: 'the delete' })
    }

    await eventually(() => loopsSleep(clock), { what: 'the three loops to sleep again' })
    expect(statements.counts()).toEqual({ claim_fresh: 20, claim_messages: 20, delete_acked: 20 })
  })

  test('at least four of five claimed rows stay on their page, so that no index is written', async () => {
    const { outbox, pool } = watched()
    const bodies = Array.from({ length: 5_000 }, (_, orderId) => ({
      orderId,
      note: 'x'.repeat(orderId % 300),
    }))
    const updates = async (): Promise<{ all: number; hot: number }> => {
      const [row] = await database.query<{ all: number; hot: number }>(
        `select n_tup_upd::int as all, n_tup_hot_upd::int as hot from pg_stat_user_tables
          where schemaname = $1 and relname = 'outbox'`,
        [database.schema],
      )
      return row!
    }
    const before = await updates()
    const client = await pool.connect()
    await client.query('begin')
    await outbox.publishMany(client, 'orders', bodies, { headers: { tenant: 'a' } })
    await client.query('commit')
    client.release()
    outbox.subscribe('orders', () => {}, { concurrency: 50 })

    await outbox.drain()
    // A session tells its counts at the latest when it ends.
    await pool.end()
    await eventually(async () => (await updates()).all - before.all === 5_000, { what: 'the counts' })

    expect((await updates()).hot - before.hot).toBeGreaterThanOrEqual(4_000)
  })
})

describe('connections', () => {
  const count = async (): Promise<number> =>
    (
      await database.query('select 1 from pg_stat_activity where application_name = $1', [
        database.applicationName,
      ])
    ).length

  test('an outbox with twenty queues keeps two connections, from its start to its stop', async () => {
    const { outbox, statements, pool } = watched()
    const got = collector<string>('messages')
    for (let queue = 0; queue < 20; queue++)
      outbox.subscribe(`queue ${queue}`, (message) => got.add(message.queue), { pollMs: { min: 5, max: 20 } })
    await using running = await outbox.start()
    await eventually(() => statements.named('lie_down').length > 0, { what: 'the outbox to listen' })

    const atRest = await count()
    for (let queue = 0; queue < 20; queue++) await fill(50, `queue ${queue}`)
    await got.take(1_000)
    await eventually(isEmpty, { what: 'the rows to be deleted' })
    const atWork = await count()
    const keeps = pool.totalCount - pool.idleCount
    await running.stop()

    expect({ atRest, atWork, keeps }).toEqual({ atRest: 2, atWork: 2, keeps: 2 })
    expect(new Set(statements.all.map(({ pid }) => pid)).size).toBe(2)
    expect(pool.totalCount - pool.idleCount).toBe(0)
  })

  test.each([1, 2])('a pool of %i is warned about and still delivers, by polling', async (max) => {
    const { outbox, statements, log } = watched({}, { max })
    const got = collector<unknown>('messages')
    outbox.subscribe('orders', ({ body }) => got.add(body), { pollMs: { min: 5, max: 20 } })
    await using running = await outbox.start()

    for (let count = 1; count <= 3; count++) {
      await outbox.publishNow('orders', count)
      await got.take(count)
    }
    await running.stop()

    expect(got.all).toEqual([1, 2, 3])
    expect(log).toEqual([
      {
        level: 'warn',
        event: 'warning',
        message: expect.stringContaining('pool is too small'),
        fields: expect.objectContaining({ max, needed: 3 }),
      },
    ])
    expect(statements.named('listen')).toEqual([])
  })

  test('handlers that use the outbox’s own pool of three are served', async () => {
    const { outbox, pool } = watched({}, { max: 3 })
    const got = collector<unknown>('follow-on messages')
    const work = async (): Promise<void> => {
      const client = await pool.connect()
      await client.query('begin')
      await outbox.publish(client, 'emails', 1)
      await client.query('commit')
      client.release()
    }
    outbox.subscribe('orders', work, { concurrency: 10 })
    outbox.subscribe('emails', () => got.add(1))
    await fill(200)

    const drained = await outbox.drain()

    expect(drained).toMatchObject({ acked: 400, retried: 0, lost: 0 })
    expect(got.all.length).toBe(200)
  })
})

describe('waking', () => {
  test('with wake always a sleeper lies down all the same: other processes may publish quietly', async () => {
    const clock = fakeClock()
    const { outbox, statements } = watched({ wake: 'always', [internals]: { clock } })
    const got = signal('the message')
    outbox.subscribe('orders', () => got.send(), { pollMs: never })
    await using _running = await outbox.start()
    // One that listens need not lie yet: whoever publishes meanwhile may be found by its first look.
    await liesStill(statements, clock)

    await outbox.publishNow('orders', 1)

    await got.wait()
    await eventually(isEmpty, { what: 'the row to be deleted' })
    expect(statements.named('lie_down')).toHaveLength(1)
  })

  test('with wake poll nobody listens: an idle outbox looks ever later, and soon again after a message', async () => {
    const clock = fakeClock()
    const { outbox, statements, log } = watched({ wake: 'poll', [internals]: { clock } })
    const got = signal('the message')
    outbox.subscribe('orders', () => got.send(), { pollMs: { min: 100, max: 800 } })
    await using _running = await outbox.start()
    const asleep = (): Promise<unknown> =>
      eventually(() => clock.left.length === 2, { what: 'engine and lease keeper to sleep' })
    const sleeps: number[] = []

    for (let looks = 1; looks <= 5; looks++) {
      await asleep()
      sleeps.push(clock.left[0]!)
      if (looks === 5) await outbox.publishNow('orders', 1)
      clock.advance(clock.left[0]!)
    }
    await got.wait()
    await asleep()
    sleeps.push(clock.left[0]!)

    // Each step of the ladder is shortened by up to 40 %, so that processes do not look together.
    const steps = [200, 400, 800, 800, 800, 100]
    sleeps.forEach((ms, index) => {
      expect(ms).toBeGreaterThanOrEqual(0.6 * steps[index]!)
      expect(ms).toBeLessThanOrEqual(steps[index]!)
    })
    expect(statements.named('listen')).toEqual([])
    expect(log).toEqual([])
    await eventually(isEmpty, { what: 'the row to be deleted' })
  })

  test('a database that lets nothing be heard is polled, which is said once however often it is tried', async () => {
    const clock = fakeClock()
    const { outbox, pool, statements, log } = watched({ [internals]: { clock } })
    // A pooler in transaction mode: LISTEN succeeds, and notifications go to somebody else.
    pool.on('connect', (client) => {
      const on = client.on.bind(client) as (...given: unknown[]) => pg.PoolClient
      client.on = (event: string, listener: unknown) =>
        event === 'notification' ? client : on(event, listener)
    })
    const got = signal('the message')
    outbox.subscribe('orders', () => got.send())
    await using _running = await outbox.start()

    const tryAgain = (): boolean => {
      clock.advance(1_000)
      return statements.named('listen').length >= 8
    }
    await eventually(tryAgain, { what: 'the fourth try to listen' })
    await outbox.publishNow('orders', 1)
    await eventually(() => tryAgain() && got.hasHappened, { what: 'the message to be found' })
    await eventually(isEmpty, { what: 'the row to be deleted' })

    expect(outbox.health()).toEqual({ ok: true, reasons: [expect.stringContaining('found by polling')] })
    expect(log).toMatchObject([
      {
        level: 'warn',
        message: expect.stringContaining('found by polling'),
        error: { message: expect.stringContaining('not a pooler in transaction mode') },
      },
    ])
  })

  test('with { pool, listen } only listening happens on the second', async () => {
    const work = watched()
    const direct = watched()
    const both = { pool: work.pool, listen: direct.pool }
    const outbox = createOutbox({ database: both, schema: database.schema, logger: false })
    const got = signal('the message')
    outbox.subscribe('orders', () => got.send(), { pollMs: never })
    await using running = await outbox.start()
    await eventually(() => direct.statements.named('lie_down').length === 1, {
      what: 'the outbox to lie down',
    })

    await outbox.publishNow('orders', 1)
    await got.wait()
    await running.stop()

    expect(direct.statements.counts()).toMatchObject({ listen: 2, lie_down: 1, unlisten: 1 })
    expect(work.statements.counts()).toMatchObject({ read_isolation: 1, send_word: 1, delete_acked: 1 })
    const listening = ['listen', 'lie_down', 'get_up', 'unlisten']
    expect(work.statements.all.filter(({ name }) => listening.includes(name))).toEqual([])
    expect(direct.statements.all.filter(({ name }) => /claim|word|delete|isolation/.test(name))).toEqual([])
  })

  test('a listening connection that is cut is made anew, and what was published meanwhile is found', async () => {
    const clock = fakeClock()
    const { outbox, statements, log } = watched({ [internals]: { clock } })
    const publisher = watched()
    const got = signal('the message')
    outbox.subscribe('orders', () => got.send(), { pollMs: never })
    await using _running = await outbox.start()
    await liesStill(statements, clock)

    await database.query('select pg_terminate_backend($1)', [statements.named('listen')[0]!.pid])
    await eventually(() => log.length === 1 && clock.left.length === 3, { what: 'the loss to be noticed' })
    await publisher.outbox.publishNow('orders', 1)
    const foundBefore = got.hasHappened
    // The first try comes after a tenth of a second at most.
    clock.advance(100)

    await got.wait()
    await eventually(isEmpty, { what: 'the row to be deleted' })
    expect(foundBefore).toBe(false)
    expect(log).toMatchObject([
      { level: 'warn', message: expect.stringContaining('not listening') },
      { level: 'info', message: 'listening again' },
    ])
  })
})
