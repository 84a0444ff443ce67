import {
  constant,
  createOutbox,
  type LogEntry,
  type Message,
  type Outbox,
  type SubscribeOptions,
} from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { fakeClock, loopsSleep } from '../support/fake-clock.ts'
import { collector, eventually, signal } from '../support/signals.ts'
import { type Sent, type Statements, watchStatements } from '../support/statements.ts'

const database = useDatabase()
const internals = Symbol.for('postbox.internals')
const pollMs = { min: 5, max: 20 }

beforeAll(async () => {
  await createOutbox({ database: database.pool({ max: 1 }), schema: database.schema }).migrate()
})

beforeEach(async () => {
  await database.query('delete from outbox')
})

interface Watched {
  readonly outbox: Outbox
  readonly statements: Statements
  readonly log: ReturnType<typeof collector<LogEntry>>
}

function outboxOf(inside: object = {}): Watched {
  const pool = database.pool()
  onTestFinished(() => pool.end())
  const log = collector<LogEntry>('log entries')
  const options = { database: pool, schema: database.schema, logger: log.add, [internals]: inside }
  return { outbox: createOutbox(options), statements: watchStatements(pool, database.schema), log }
}

const fill = (count: number): Promise<unknown> =>
  database.query(
    `insert into outbox (id, queue, body)
     select gen_random_uuid(), 'orders', n::text::bytea from generate_series(1, $1) as n`,
    [count],
  )

/** They come back an hour after a failure, and not during the test. */
const retry = constant({ delayMs: 3_600_000 })

interface Row {
  readonly body: string
  readonly leased: boolean
  readonly attempts: number
}

const rows = (): Promise<Row[]> =>
  database.query(
    `select convert_from(body, 'utf8') as body, lease_token is not null as leased, attempts from outbox order by seq`,
  )

const isEmpty = async (): Promise<boolean> => (await rows()).length === 0

/** Runs `body` before each statement or row of that kind, until the test ends. `fails` counts what it refused, past rollbacks. */
async function refuse(when: string, body: string): Promise<void> {
  await database.query('create sequence tries')
  await database.query(`create function refuse() returns trigger language plpgsql as $$ begin ${body} end $$`)
  await database.query(`create trigger refuse before ${when} execute function refuse()`)
  onTestFinished(allow)
}

async function allow(): Promise<void> {
  await database.query('drop function if exists refuse cascade')
  await database.query('drop sequence if exists tries')
  await database.query('delete from outbox')
}

/** A handler for many that all end at once, when they may. */
function together(count: number, end: () => void = () => {}) {
  const started = collector<string>('handlers that started')
  const go = signal('leave to finish')
  const work = async ({ body }: { readonly body: unknown }): Promise<void> => {
    started.add(String(body))
    await go.wait()
    end()
  }
  return { work, go, all: () => started.take(count), started }
}

/** How many messages a statement was to settle. */
const sizeOf = ({ name, values }: Sent): number =>
  name === 'reschedule_retried' || name === 'bury_dead'
    ? JSON.parse(String(values[0])).length
    : String(values[0]).split(',').length

const refuseRow = `if old.body = '137' then raise exception 'not this one' using errcode = '23514'; end if;`
const fail = (): void => {
  throw new Error('no')
}

describe('a flush of many with one row that cannot be written', () => {
  test.each([
    ['deletes', 'delete_acked', 'delete on outbox for each row', `${refuseRow} return old;`, () => {}],
    [
      'puts back',
      'reschedule_retried',
      'update of due_at on outbox for each row',
      `${refuseRow} return new;`,
      fail,
    ],
    // biome-ignore lint/complexity/useMaxParams: a row of the table
  ])('%s the others, and reports that one, which stays', async (_, name, when, body, end) => {
    const { outbox, statements, log } = outboxOf()
    const { work, go, all } = together(200, end)
    outbox.subscribe('orders', work, { pollMs, concurrency: 200, retry })
    await refuse(when, body)
    await fill(200)
    await using running = await outbox.start()
    await all()

    go.send()
    const entry = await log.find(
      ({ event, fields }) => event === 'settle_failed' && fields['delayMs'] === null,
    )
    await running.stop()

    expect((await rows()).filter(({ attempts }) => attempts === 0)).toMatchObject([
      { body: '137', leased: true },
    ])
    expect(log.all.filter(({ level }) => level === 'error')).toEqual([entry])
    expect(entry).toMatchObject({ fields: { queue: 'orders', handler: 'work' }, error: { code: '23514' } })
    // The whole, then two halves of each part that failed: 200, 100, 50, 25, 13, 7, 4, 2, 1.
    expect(statements.named(name).length).toBeLessThanOrEqual(17)
    expect(sizeOf(statements.named(name)[0]!)).toBe(200)
    await allow()
  })
})

describe('a flush that fails for a reason that passes', () => {
  test.each([
    ['a serialisation failure', '40001'],
    ['a deadlock', '40P01'],
  ])('such as %s is tried again whole, and lands', async (_, code) => {
    const { outbox, statements, log } = outboxOf()
    const { work, go, all } = together(20)
    outbox.subscribe('orders', work, { pollMs, concurrency: 20 })
    await refuse(
      'delete on outbox for each statement',
      `if nextval('tries') <= 2 then raise exception 'later' using errcode = '${code}'; end if; return null;`,
    )
    await fill(20)
    await using running = await outbox.start()
    await all()

    go.send()
    await eventually(isEmpty, { what: 'the rows to be deleted' })
    await running.stop()

    const deletes = statements.named('delete_acked')
    expect(deletes.map(sizeOf)).toEqual([20, 20, 20])
    expect(new Set(deletes.map(({ values }) => String(values))).size).toBe(1)
    expect(log.all.map(({ event }) => event)).toEqual([
      'breaker_opened',
      'settle_failed',
      'settle_failed',
      'breaker_closed',
    ])
    expect(log.all[1]).toMatchObject({ level: 'error', error: { code }, fields: { messages: 20 } })
  })

  test('and then for one that does not holds nobody up', async () => {
    const { outbox, log } = outboxOf()
    const got = collector<unknown>('messages')
    outbox.subscribe('orders', ({ body }) => got.add(body), { pollMs })
    await refuse(
      'delete on outbox for each row',
      `if old.body = 'good' then return old; end if;
       raise exception 'no' using errcode = case when nextval('tries') = 1 then '40001' else '23514' end;`,
    )
    await outbox.publishNow('orders', 'bad')
    await using running = await outbox.start()
    await log.find(({ event, fields }) => event === 'settle_failed' && fields['delayMs'] === null)

    await outbox.publishNow('orders', 'good')

    await got.take(2)
    await running.stop()
    await allow()
  })
})

describe('nothing more is claimed while the table of messages', () => {
  test.each([
    ['refuses deletes', refuseDeletes],
    ['is renamed', rename],
    ['is locked', lock],
  ])('%s, and delivery goes on afterwards', async (_, block) => {
    const { outbox, statements, log } = outboxOf({ statementTimeoutMs: 1_000 })
    const { work, go, started } = together(5)
    outbox.subscribe('orders', work, { pollMs, concurrency: 5, prefetch: 0, leaseMs: 1_000 })
    await fill(20)
    await using _running = await outbox.start()
    await started.take(5)
    const failures = (): LogEntry[] => log.all.filter(({ event }) => event === 'settle_failed')
    const untilFailed = (times: number): Promise<unknown> =>
      eventually(() => failures().length >= times, { what: `failure ${times}` })

    const unblock = await block()
    go.send()
    // A claim may be waiting for its turn behind the delete that fails first, and none behind the second.
    await untilFailed(2)
    const before = statements.named('claim_messages').length
    await untilFailed(4)
    const claimed = statements.named('claim_messages').length - before
    const { ok, reasons } = outbox.health()
    await unblock()

    await eventually(isEmpty, { what: 'the rows to be deleted' })
    expect(claimed).toBe(0)
    expect(ok).toBe(false)
    expect(reasons).toContain('what became of messages cannot be written')
    expect(new Set(started.all).size).toBe(20)
  })

  async function refuseDeletes(): Promise<() => Promise<unknown>> {
    await refuse('delete on outbox for each statement', `raise exception 'full' using errcode = '53100';`)
    return () => database.query('drop trigger refuse on outbox')
  }

  async function rename(): Promise<() => Promise<unknown>> {
    await database.query('alter table outbox rename to hidden')
    return () => database.query('alter table hidden rename to outbox')
  }

  async function lock(): Promise<() => Promise<unknown>> {
    const client = await database.client()
    await client.query('begin')
    await client.query('lock table outbox in access exclusive mode')
    return () => client.end()
  }
})

describe('what one statement settles', () => {
  test('with flush each is one message, with maxBatch at most as many, and else all that ended together', async () => {
    const sizes = async (options: SubscribeOptions): Promise<number[]> => {
      const { outbox, statements } = outboxOf()
      const { work, go, all } = together(20)
      outbox.subscribe('orders', work, { pollMs, concurrency: 20, ...options })
      await fill(20)
      await using running = await outbox.start()
      await all()
      go.send()
      await running.stop()
      return statements.named('delete_acked').map(sizeOf)
    }

    expect(await sizes({ flush: 'each' })).toEqual(Array.from({ length: 20 }, () => 1))
    expect(await sizes({ maxBatch: 7 })).toEqual([7, 7, 6])
    expect(await sizes({})).toEqual([20])
    expect(await isEmpty()).toBe(true)
  })

  test('is five hundred retries, when so many fail together', async () => {
    const { outbox, statements } = outboxOf()
    const { work, go, all } = together(500, fail)
    outbox.subscribe('orders', work, { pollMs, concurrency: 500, retry })
    await fill(500)
    await using running = await outbox.start()
    await all()

    go.send()
    await running.stop()

    expect(statements.named('reschedule_retried').map(sizeOf)).toEqual([500])
    expect(statements.named('delete_acked')).toEqual([])
    expect((await rows()).every(({ leased, attempts }) => !leased && attempts === 1)).toBe(true)
  })
})

test('what is released is free at once and uncounted, and wakes another process that sleeps', async () => {
  const never = { min: 3_600_000, max: 3_600_000 }
  const clock = fakeClock()
  const [one, two] = [outboxOf(), outboxOf({ clock })]
  const { work, go, started } = together(1)
  one.outbox.subscribe('orders', work, { pollMs: never, concurrency: 1, prefetch: 5 })
  const got = collector<Message>('messages of the other process')
  two.outbox.subscribe('orders', (message) => got.add(message), { pollMs: never })
  await fill(6)
  await using first = await one.outbox.start()
  await started.take(1)
  await using _second = await two.outbox.start()
  const isDown = (): unknown => two.statements.named('lie_down')[0]?.rows
  await eventually(() => isDown() && loopsSleep(clock), { what: 'the other process to sleep' })
  const leased = (await rows()).filter((row) => row.leased)

  const stopped = first.stop()
  const others = await got.take(5)
  go.send()
  await stopped

  expect(leased.length).toBe(6)
  expect(one.statements.named('release_leases').map(sizeOf)).toEqual([5])
  expect(others.map(({ body, attempt, deliveries }) => ({ body, attempt, deliveries }))).toEqual(
    [2, 3, 4, 5, 6].map((body) => ({ body, attempt: 1, deliveries: 1 })),
  )
  await eventually(isEmpty, { what: 'the rows to be deleted' })
  expect(started.all).toEqual(['1'])
})
