// Statements of several connections over the same rows. Heavier forms are in ../large/races.test.ts.
import type pg from 'pg'
import { createOutbox, type LogEntry } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { Told } from '../../packages/postbox/src/core/events.ts'
import type { Settlement } from '../../packages/postbox/src/core/settlement.ts'
import { sqlStateOf } from '../../packages/postbox/src/core/sql-state.ts'
import type { Held } from '../../packages/postbox/src/runtime/held.ts'
import { keepLeases } from '../../packages/postbox/src/runtime/lease-keeper.ts'
import { createSettler } from '../../packages/postbox/src/runtime/settler.ts'
import { extendLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { useDatabase } from '../support/database.ts'
import { longTestLimitMs, longWaitLimitMs } from '../support/patience.ts'
import { recordedEvents } from '../support/recorded-events.ts'
import {
  churn,
  fencesOf,
  fill,
  openTransaction,
  openWorker,
  seqsOf,
  type Worker,
  withSettings,
} from '../support/sessions.ts'
import { collector, eventually } from '../support/signals.ts'

const database = useDatabase()
const queues = { orders: {} }
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool({ max: 20 })
  await createOutbox({ database: pool, schema: database.schema, queues, logger: false }).migrate()
})

beforeEach(({ onTestFinished }) => {
  onTestFinished(async () => {
    await database.query('truncate outbox, outbox_dead restart identity')
  })
})

/** A pool of the test's own, whose connections have these settings. */
function poolWith(settings: Readonly<Record<string, string>>): pg.Pool {
  const own = database.pool({ connectionString: withSettings(database.url, settings), max: 20 })
  onTestFinished(() => own.end())
  return own
}

/** What a process writes with, and what it said meanwhile. */
function settlerOf({ lane, names, clock }: Worker) {
  const { teller, told } = recordedEvents({ isHeard: false })
  const settler = createSettler({
    lane,
    names,
    // What fails is tried again at once.
    clock: { now: clock.now, sleep: () => Promise.resolve() },
    teller,
    wake: 'poll',
    deadLetters: 'table',
    delivered: 'delete',
    giveUp: new AbortController().signal,
    changed: () => {},
  })
  const how = { maxBatch: 500, durationMs: null }
  const settle = (held: readonly Held[], write: Settlement['write'] = 'delete'): Promise<unknown> =>
    Promise.all(
      held.map(({ lease }) => new Promise((done) => settler.settle(settlementOf(write, lease), how, done))),
    )
  return { settler, settle, told }
}

function settlementOf(write: Settlement['write'], lease: Held['lease']): Settlement {
  const failure = { error: 'no', thrown: new Error('no') }
  switch (write) {
    case 'reschedule':
      return { write, lease, delayMs: 1_000, ...failure }
    case 'snooze':
      return { write, lease, delayMs: 1_000 }
    case 'bury':
      return { write, lease, reason: 'rejected', attempts: 1, ...failure }
    case 'delete':
      return { write, lease, followOns: [] }
    default:
      return { write, lease }
  }
}

/** The SQLSTATEs of what went wrong. */
const statesOf = (told: readonly Told[]): readonly string[] =>
  told.map((event) => ('error' in event ? sqlStateOf(event.error) : null)).filter((state) => state !== null)

describe('beside a row that a transaction has locked, as a transactional handler does', () => {
  /** Five rows in hand, the third of them locked. Whoever waits for a lock on this connection fails. */
  const fiveHeld = async () => {
    const worker = openWorker(poolWith({ lock_timeout: '5s' }), database.schema)
    await fill(pool, { rows: 5 })
    const held = await worker.take(5)
    const locker = await openTransaction(pool)
    await locker.query('select from outbox where seq = 3 for update')
    return { worker, held, locker }
  }

  test('a renewal renews the others at once, and finds the locked one still held', async () => {
    const { worker, held } = await fiveHeld()
    const { teller, told } = recordedEvents({ isHeard: false })
    const aborted: string[] = []
    for (const one of held) one.abort = () => aborted.push(one.lease.seq)
    const halt = new AbortController()

    const keeping = keepLeases(
      { ...worker, held: new Set(held), teller, shortestLeaseMs: () => 60_000 },
      halt.signal,
    )
    worker.clock.advance(30_000)
    const checked = await eventually(
      () => worker.exchanges.find(({ statement }) => statement.name === 'holds_leases'),
      { what: 'the look at what did not come back' },
    )
    halt.abort()
    await keeping

    const renewal = worker.exchanges.find(({ statement }) => statement.name === 'extend_leases')
    expect(renewal?.rows).toEqual([{ seq: '1' }, { seq: '2' }, { seq: '4' }, { seq: '5' }])
    expect(checked.rows).toEqual([{ seq: '3' }])
    expect(held.map(({ deadline }) => deadline)).toEqual([90_000, 90_000, 60_000, 90_000, 90_000])
    expect({ aborted, lost: held.filter(({ isLost }) => isLost), told }).toEqual({
      aborted: [],
      lost: [],
      told: [],
    })
  })

  test('the others are deleted at once, and the locked one by its own transaction', async () => {
    const { worker, held, locker } = await fiveHeld()
    const { settle, told } = settlerOf(worker)

    await settle(held.filter(({ lease }) => lease.seq !== '3'))
    const { rows } = await pool.query('select seq::int, lease_token = $1 as held from outbox', [
      held[2]?.lease.token,
    ])
    await locker.query('delete from outbox where seq = 3')
    await locker.commit()

    expect(rows).toEqual([{ seq: 3, held: true }])
    expect(told).toEqual([])
  })
})

describe('two statements over the same five hundred rows', () => {
  // As on a large table: the rows are found one after the other, in the order in which they are named.
  const oneByOne = { enable_seqscan: 'off', enable_hashjoin: 'off', enable_mergejoin: 'off', jit: 'off' }

  /** Two connections, and a third that has locked the row in the middle until it is told. */
  const twoAtTheMiddle = async () => {
    const own = poolWith({ ...oneByOne, deadlock_timeout: '100ms' })
    const [one, two] = [openWorker(own, database.schema), openWorker(own, database.schema)]
    await fill(pool, { rows: 500 })
    const held = await one.take(500)
    const middle = await openTransaction(pool)
    await middle.query('select from outbox where seq = 250 for update')
    return { one, two, held, middle }
  }
  /** Both have got as far as they can. */
  const bothWait = () =>
    eventually(
      async () => {
        const [row] = await database.query<{ waiting: number }>(
          `select count(*)::int as waiting from pg_stat_activity
            where application_name = $1 and wait_event_type = 'Lock'`,
          [database.applicationName],
        )
        return row?.waiting === 2
      },
      { what: 'both to wait' },
    )

  test.each(['delete', 'release', 'snooze', 'reschedule', 'bury'] as const)(
    'do not deadlock, in whatever order they were given to the settlers (%s)',
    async (write) => {
      const { one, two, held, middle } = await twoAtTheMiddle()
      const [forth, back] = [settlerOf(one), settlerOf(two)]

      const flushes = [forth.settle(held, write), back.settle(held.toReversed(), write)]
      await bothWait()
      await middle.rollback()
      await Promise.all(flushes)

      expect([...statesOf(forth.told), ...statesOf(back.told)]).toEqual([])
      const lost = [forth.settler.settled.lost, back.settler.settled.lost]
      expect(lost.toSorted((a, b) => a - b)).toEqual([0, 500])
    },
  )

  test('deadlock when they name the rows in opposite order', async () => {
    const { one, two, held, middle } = await twoAtTheMiddle()
    const retries = fencesOf(held).map((fence) => ({ ...fence, delayMs: 1_000, error: 'no' }))

    const flushes = [
      one.run(rescheduleRetried(one.names, retries, false)),
      two.run(rescheduleRetried(two.names, retries.toReversed(), false)),
    ]
    const ended = Promise.allSettled(flushes)
    await bothWait()
    await middle.rollback()

    const failed = (await ended).filter((result) => result.status === 'rejected')
    expect(failed.map(({ reason }) => sqlStateOf(reason))).toEqual(['40P01'])
  })

  test('do not wait for each other when one is a renewal: it steps over what the flush has locked', async () => {
    const { one, two, held, middle } = await twoAtTheMiddle()
    const { settle } = settlerOf(one)
    const extensions = fencesOf(held.toReversed()).map((fence) => ({ ...fence, leaseMs: 60_000 }))

    const flushed = settle(held)
    await eventually(async () => (await locked()) === 250, { what: 'the flush to reach the middle' })
    const renewed = await two.run(extendLeases(two.names, extensions))
    await middle.rollback()
    await flushed

    expect(renewed).toHaveLength(250)
    expect(await pool.query('select from outbox')).toMatchObject({ rowCount: 0 })
  })

  /** How many of the rows somebody has locked. */
  async function locked(): Promise<number> {
    const probe = await openTransaction(pool)
    const free = await probe.query('select seq from outbox for update skip locked')
    await probe.rollback()
    return 500 - free.length
  }
})

test('a claim steps over rows that another is claiming, and waits for nobody', async () => {
  const worker = openWorker(poolWith({ lock_timeout: '5s' }), database.schema)
  await fill(pool, { rows: 5, dueAt: 'case when n > 2 then now() end' })
  const other = await openTransaction(pool)
  await other.query('select from outbox where seq in (2, 4) for update')

  const held = await worker.take(5)

  expect(seqsOf(held)).toEqual([3, 5, 1])
})

test(
  'no row is ever in two hands: six claimers that claim, release and delete at random',
  async () => {
    const workers = Array.from({ length: 6 }, () => openWorker(pool, database.schema))

    const { claims, rows, doubles, overs } = await churn(workers, pool, 700)

    expect(claims).toBeGreaterThanOrEqual(700)
    expect(rows).toBeGreaterThan(700)
    expect({ doubles, overs }).toEqual({ doubles: 0, overs: 0 })
  },
  longTestLimitMs,
)

describe('from connections that are repeatable read by default', () => {
  const repeatableRead = { default_transaction_isolation: 'repeatable read' }

  test(
    'four claimers take rows from under each other, and no statement fails',
    async () => {
      const own = poolWith(repeatableRead)
      const workers = Array.from({ length: 4 }, () => openWorker(own, database.schema))
      expect((await own.query('show default_transaction_isolation')).rows).toEqual([
        { default_transaction_isolation: 'repeatable read' },
      ])

      const { doubles, overs } = await churn(workers, own, 500)

      expect({ doubles, overs }).toEqual({ doubles: 0, overs: 0 })
    },
    longTestLimitMs,
  )

  test(
    'four outboxes deliver two thousand messages, and none says that the database failed',
    async () => {
      const own = poolWith(repeatableRead)
      const log = collector<LogEntry>('log entries')
      const got = collector<string>('messages')
      const outboxes = Array.from({ length: 4 }, () =>
        createOutbox({ database: own, schema: database.schema, queues, logger: log.add }),
      )
      await fill(pool, { rows: 2_000 })
      for (const outbox of outboxes)
        outbox.subscribe('orders', ({ id }) => got.add(id), { concurrency: 5, prefetch: 0 })

      const running = await Promise.all(outboxes.map((outbox) => outbox.start()))
      await got.take(2_000, { withinMs: longWaitLimitMs })
      await Promise.all(running.map((one) => one.stop()))

      expect(log.all).toEqual([])
      expect(new Set(got.all).size).toBe(2_000)
      expect(await pool.query('select from outbox')).toMatchObject({ rowCount: 0 })
    },
    longTestLimitMs,
  )
})
