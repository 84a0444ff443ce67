// Many dead letters at once on a real server: several operators, processes that die, transactions that are in the way.
import type pg from 'pg'
import { createOutbox, type DeadLetters, type Outbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { useDatabase } from '../support/database.ts'
import { fillDead, layDown, type Place } from '../support/dead-letters.ts'
import { type Moment, scriptedTransactions } from '../support/scripted-transactions.ts'
import { withSettings } from '../support/sessions.ts'
import { collector, eventually } from '../support/signals.ts'

const database = useDatabase()
const { channel } = resolveNames({ schema: database.schema, table: 'outbox' })
let pool: pg.Pool
let deadLetters: DeadLetters

beforeAll(async () => {
  pool = database.pool({ max: 20 })
  const outbox = outboxOf()
  deadLetters = outbox.deadLetters
  await outbox.migrate()
})

beforeEach(async () => {
  await database.query('truncate outbox, outbox_dead, outbox_operations')
})

function outboxOf(options: object = {}): Outbox {
  return createOutbox({ database: pool, schema: database.schema, logger: false, ...options })
}

const by = 'ann'

/** So many in each place, two queues, at times that alternate. */
async function fillBoth(count: number): Promise<void> {
  await fillDead(database, count)
  await fillDead(database, count, { queue: 'emails' })
  await database.query(
    `insert into outbox (id, queue, body, due_at, failed_at, failure_reason)
     select gen_random_uuid(), case when n % 2 = 0 then 'orders' else 'emails' end, '1', 'infinity',
            now() - interval '1 minute' - n * interval '1 ms', 'rejected'
       from generate_series(1, $1::int) as n`,
    [count],
  )
}

/** What became of the messages: how many live, how many of them twice, how many are dead, and how often each was replayed. */
async function tally(): Promise<object> {
  const [row] = await database.query<Record<string, string>>(
    `select count(*) filter (where failed_at is null)::int as alive,
            (count(*) - count(distinct id))::int as twice,
            (count(*) filter (where failed_at is not null) + (select count(*) from outbox_dead))::int as dead,
            coalesce(max(jsonb_array_length(failure_history -> 'cycles')), 0)::int as cycles
       from outbox`,
  )
  return row!
}

async function begin(): Promise<pg.PoolClient> {
  const client = await pool.connect()
  onTestFinished(async () => {
    await client.query('rollback')
    client.release()
  })
  await client.query('begin')
  return client
}

const arm = (client: pg.PoolClient, timer: string): Promise<unknown> =>
  client.query(
    `insert into outbox (id, queue, body, timer_id, due_at) values (gen_random_uuid(), 'orders', '1', $1, now() + interval '1 h')`,
    [timer],
  )

const untilWaiting = (count: number): Promise<unknown> =>
  eventually(
    async () => {
      const waiting = await database.query(
        `select from pg_stat_activity where starts_with(application_name, $1) and wait_event_type = 'Lock'`,
        [database.applicationName],
      )
      return waiting.length === count
    },
    { what: `${count} to wait` },
  )

describe('of several operators at once', () => {
  test('each dead letter is replayed by one, and what they count adds up', async () => {
    await fillBoth(800)
    const filters = [{}, { queue: 'orders' }, { queue: 'emails' }, { reason: 'rejected' as const }, {}]

    const results = await Promise.all(filters.map((filter) => deadLetters.replayAll(filter, { by })))

    expect(results.reduce((sum, { replayed }) => sum + replayed, 0)).toBe(2_400)
    expect(results.every(({ finished, conflicts }) => finished && conflicts === 0)).toBe(true)
    expect(await tally()).toEqual({ alive: 2_400, twice: 0, dead: 0, cycles: 1 })
  })

  test('the second passes by what the first has in hand, and the first goes on behind it', async () => {
    await fillBoth(800)
    let second: Promise<{ readonly replayed: number }> | undefined
    // In the middle of its first batch; the transaction before it is a look.
    const held = scriptedTransactions(pool, {
      async reach(moment, number) {
        if (moment !== 'before commit' || number !== 2) return
        second = deadLetters.replayAll({}, { by: 'ben' })
        await second
      },
    })

    const first = await outboxOf({ database: held }).deadLetters.replayAll({}, { by })

    expect(first).toMatchObject({ replayed: 500, finished: true })
    expect(await second).toMatchObject({ replayed: 1_900, finished: true })
    expect(await tally()).toEqual({ alive: 2_400, twice: 0, dead: 0, cycles: 1 })
  })

  test('those who go on with one operation take turns', async () => {
    await fillBoth(800)
    const { operation } = await deadLetters.replayAll({}, { by, limit: 2_000, signal: AbortSignal.abort() })

    const results = await Promise.all(
      ['ann', 'ben', 'cy'].map((one) => deadLetters.resume(operation, { by: one })),
    )

    expect(results).toEqual(
      results.map(() => ({ dryRun: false, operation, replayed: 2_000, conflicts: 0, finished: true })),
    )
    expect(await tally()).toEqual({ alive: 2_000, twice: 0, dead: 400, cycles: 1 })
  })

  test('one discards and the other replays: each dead letter is either gone or alive', async () => {
    await fillBoth(800)

    const [replay, discard] = await Promise.all([
      deadLetters.replayAll({}, { by }),
      deadLetters.discard({}, { by: 'ben' }),
    ])

    expect(replay.replayed + discard.discarded).toBe(2_400)
    expect(await tally()).toMatchObject({ alive: replay.replayed, twice: 0, dead: 0 })
  })
})

describe('a process that dies', () => {
  const all = 1_200
  test.each(
    ([1, 2, 3] as const).flatMap((batch) =>
      (['before commit', 'after commit'] as const).map((moment): [Moment, number] => [moment, batch]),
    ),
  )(
    '%s of batch %i leaves an operation that is resumed: every message is replayed once',
    async (when, batch) => {
      await fillBoth(all / 3)
      const dying = scriptedTransactions(pool, {
        reach(moment, number) {
          if (moment === when && number === batch + 1) throw new Error('killed')
        },
      })
      const replay = outboxOf({ database: dying }).deadLetters.replayAll({}, { by, perSecond: 100 })
      await expect(replay).rejects.toThrow('killed')

      const [left] = (await deadLetters.operations()).items
      const landed = Math.min(all, (when === 'before commit' ? batch - 1 : batch) * 500)
      expect(left).toMatchObject({ kind: 'replay', changed: landed })
      expect(await tally()).toMatchObject({ alive: landed, dead: all - landed })

      expect(await deadLetters.resume(left!.id, { by: 'ben' })).toMatchObject({
        replayed: all,
        finished: true,
      })
      expect(await tally()).toEqual({ alive: all, twice: 0, dead: 0, cycles: 1 })
      const [pace] = await database.query<{ gaps: string }>(
        `select count(*)::int as gaps
         from (select due_at - lag(due_at) over (order by due_at) as gap from outbox) as g
        where gap < interval '9.99 ms'`,
      )
      expect(pace).toEqual({ gaps: 0 })
    },
  )

  test('in a discard leaves an operation that tells what is gone', async () => {
    await fillBoth(400)
    const dying = scriptedTransactions(pool, {
      reach(moment, number) {
        if (moment === 'before commit' && number === 3) throw new Error('killed')
      },
    })

    await expect(outboxOf({ database: dying }).deadLetters.discard({}, { by })).rejects.toThrow('killed')

    expect((await deadLetters.operations()).items).toMatchObject([{ changed: 500, finishedAt: null }])
    expect(await tally()).toMatchObject({ alive: 0, dead: 700 })
  })
})

test('what dies again while an operation runs is not replayed a second time', async () => {
  await fillBoth(400)
  // Whatever a batch brings back to life has died again before the next.
  const deadly = scriptedTransactions(pool, {
    async reach(moment) {
      if (moment === 'before commit') return
      await database.query(
        `update outbox set failed_at = clock_timestamp(), failure_reason = 'rejected', due_at = 'infinity' where failed_at is null`,
      )
    },
  })

  const result = await outboxOf({ database: deadly }).deadLetters.replayAll({}, { by })

  expect(result).toMatchObject({ replayed: 1_200, finished: true })
  expect(await tally()).toEqual({ alive: 0, twice: 0, dead: 1_200, cycles: 1 })
})

describe.each(['read committed', 'repeatable read', 'serializable'])(
  'where transactions are %s by default',
  (isolation) => {
    test('who began before another one committed gets an answer, not an error', async () => {
      await fillBoth(300)
      const settings = { default_transaction_isolation: isolation }
      const own = database.pool({ connectionString: withSettings(database.url, settings) })
      onTestFinished(() => own.end())
      let first: Promise<object> | undefined
      // Its transaction has read something, and with it all that a stricter one would ever see.
      const late = scriptedTransactions(own, {
        async send(text) {
          if (!text.includes('skip locked')) return
          first ??= deadLetters.replayAll({}, { by, limit: 400 })
          await first
        },
      })

      const second = await outboxOf({ database: late }).deadLetters.replayAll({}, { by: 'ben' })

      expect(await first).toMatchObject({ replayed: 400 })
      expect(second).toMatchObject({ replayed: 500, finished: true })
      expect(await tally()).toEqual({ alive: 900, twice: 0, dead: 0, cycles: 1 })
    })
  },
)

describe.each<[Place]>([['moved'], ['quarantined']])('timers that are %s', (place) => {
  test('stay dead when one of their name, armed this moment, is committed; the rest is replayed', async () => {
    await layDown(database, place, [{ timer: 't' }, {}, {}])
    const arming = await begin()
    await arm(arming, 't')

    const replay = deadLetters.replayAll({}, { by })
    await untilWaiting(1)
    await arming.query('commit')

    expect(await replay).toMatchObject({ replayed: 2, conflicts: 1, finished: true })
    expect(await tally()).toMatchObject({ alive: 3, dead: 1 })
  })

  test('are replayed when one of their name, armed this moment, is rolled back', async () => {
    await layDown(database, place, [{ timer: 't' }, {}])
    const arming = await begin()
    await arm(arming, 't')

    const replay = deadLetters.replayAll({}, { by })
    await untilWaiting(1)
    await arming.query('rollback')

    expect(await replay).toMatchObject({ replayed: 2, conflicts: 0, finished: true })
  })

  test('end no transaction that arms them the other way round: it is the batch that gives way', async () => {
    await layDown(
      database,
      place,
      ['a', 'x', 'b'].map((timer, n) => ({ timer, failed_at: `2026-01-0${n + 1}T00:00:00Z` })),
    )
    const [arming, other] = [await begin(), await begin()]
    await arm(arming, 'b')
    await arm(other, 'x')

    const replay = deadLetters.replayAll({}, { by })
    await untilWaiting(1)
    // The batch has `a` in hand and waits for `x`; whoever wants `a` waits for the batch, which will then wait for `b`.
    const armed = arm(arming, 'a').then(
      () => 'armed',
      ({ code }) => code,
    )
    await untilWaiting(2)
    await other.query('rollback')
    const outcome = await armed
    await arming.query('commit')

    // Not 40P01. On a slow machine the batch has shrunk to single rows by then, and `a` lives.
    expect(['armed', '23505']).toContain(outcome)
    expect(await replay).toMatchObject({ finished: true })
    expect(await tally()).toMatchObject({ twice: 0 })
  })
})

test.each([
  ['at once', {}, ['emails', 'orders']],
  ['later', { delayMs: 20_000 }, []],
])('who sleeps is told once for each queue of a batch, when it is due %s', async (_, options, told) => {
  const listener = await database.client()
  onTestFinished(() => listener.end())
  const heard = collector<string>('notifications')
  listener.on('notification', ({ payload }) => heard.add(payload ?? ''))
  await listener.query(`listen "${channel}"`)
  await fillBoth(100)

  await outboxOf({ wake: 'always' }).deadLetters.replayAll({}, { by, ...options })
  await database.query(`select pg_notify($1, 'the end')`, [channel])

  await heard.find((payload) => payload === 'the end')
  expect(heard.all.toSorted()).toEqual([...told, 'the end'])
})

test('what a trigger of the application keeps from the table stays dead, of two with one id one by one', async () => {
  const id = '0190163d-8694-739b-9aea-966c26f8ad91'
  await layDown(database, 'moved', [{ id, queue: 'refused' }, { id, queue: 'kept' }, { queue: 'refused' }])
  await database.query(`create function refuse() returns trigger language plpgsql as
    $$ begin if new.queue = 'refused' then return null; end if; return new; end $$`)
  await database.query('create trigger refuse before insert on outbox for each row execute function refuse()')
  onTestFinished(() => void database.query('drop function refuse cascade'))
  const { deadLetters } = createOutbox({ database: pool, schema: database.schema, logger: false })
  const { replayed, conflicts } = { ...(await deadLetters.replayAll({}, { by })) } as Record<string, unknown>

  expect({ replayed, conflicts }).toEqual({ replayed: 1, conflicts: 2 })
  expect(await database.query('select queue from outbox_dead')).toHaveLength(2)
  expect(await database.query('select queue from outbox')).toEqual([{ queue: 'kept' }])
})

test('what is replayed is delivered, the oldest of a queue first', async () => {
  const ids = await layDown(
    database,
    'moved',
    Array.from({ length: 20 }, (_, n) => ({
      failed_at: new Date(Date.UTC(2026, 0, 1, 0, 0, 20 - n)).toISOString(),
    })),
  )
  const consumer = outboxOf()
  const messages = collector<string>('messages')
  consumer.subscribe('orders', ({ id }) => messages.add(id), { concurrency: 1 })
  await using _running = await consumer.start()

  await consumer.deadLetters.replayAll({ queue: 'orders' }, { by })

  expect(await messages.take(20)).toEqual([...ids].reverse())
})

test('postgres.js replays, discards, lists and resumes, too', async () => {
  const sql = database.postgresJs()
  onTestFinished(() => sql.end())
  const letters = outboxOf({ database: sql }).deadLetters
  await fillBoth(10)

  const { operation } = await letters.replayAll(
    { queue: 'orders' },
    { by, perSecond: 5, signal: AbortSignal.abort() },
  )

  expect(await letters.resume(operation, { by })).toMatchObject({ replayed: 15, finished: true })
  expect(await letters.discard({}, { by })).toMatchObject({ discarded: 15 })
  expect(await letters.purge({ olderThanMs: 0 })).toEqual({ purged: 0 })
  expect((await letters.operations({ limit: 1 })).items).toMatchObject([{ kind: 'discard', changed: 15 }])
})

test('without its tables says what to do', async () => {
  const nowhere = outboxOf({ table: 'nowhere' }).deadLetters
  const missing = { code: 'OUTBOX_SCHEMA_MISSING' }

  await expect(nowhere.replayAll({}, { by })).rejects.toMatchObject(missing)
  await expect(nowhere.replayAll({}, { by, dryRun: true })).rejects.toMatchObject(missing)
  await expect(nowhere.purge({ olderThanMs: 0 })).rejects.toMatchObject(missing)
})
