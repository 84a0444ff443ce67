import type pg from 'pg'
import { createOutbox, type DeadLetters, type Outbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { useDatabase } from '../support/database.ts'
import { type Letter, layDown, type Place } from '../support/dead-letters.ts'
import { type Replayer, replayer, type Way, ways } from '../support/replayers.ts'
import { type Collector, collector } from '../support/signals.ts'

const database = useDatabase()
const { channel } = resolveNames({ schema: database.schema, table: 'outbox' })
let pool: pg.Pool
let outbox: Outbox
let deadLetters: DeadLetters

beforeAll(async () => {
  pool = database.pool()
  outbox = outboxOf()
  deadLetters = outbox.deadLetters
  await outbox.migrate()
})

beforeEach(async () => {
  await database.query('truncate outbox, outbox_dead restart identity')
  // So that a row's new seq is not its old one by chance.
  await database.query(`alter table outbox alter column seq restart with 100`)
})

function outboxOf(options: object = {}): Outbox {
  return createOutbox({ database: pool, schema: database.schema, logger: false, ...options })
}

/** What is notified from now on. */
async function listening(): Promise<Collector<string>> {
  const listener = await database.client()
  onTestFinished(() => listener.end())
  const heard = collector<string>('notifications')
  listener.on('notification', ({ payload }) => heard.add(payload ?? ''))
  await listener.query(`listen "${channel}"`)
  return heard
}

interface Row {
  readonly [column: string]: unknown
}

const rowsOf = async (table: 'outbox' | 'outbox_dead'): Promise<Row[]> =>
  database.query<Row>(`select * from ${table} order by 1`)

const both = async (): Promise<unknown> => ({
  messages: await rowsOf('outbox'),
  dead: await rowsOf('outbox_dead'),
})

const id = '01890000-0000-7000-8000-00000000000a'
const full = {
  id,
  queue: 'orders',
  key: 'k 1',
  timer: 't 1',
  body: '{"orderId":1}',
  headers: { type: 'order', 'correlation-id': 'c 1' },
  attempts: 3,
  deliveries: 5,
  created_at: '2026-01-01T00:00:00.123456Z',
  first_attempt_at: '2026-01-01T00:00:01.000001Z',
  last_attempt_at: '2026-01-01T00:00:02Z',
  generation: 9,
  failed_at: '2026-01-01T00:00:03.123456Z',
  failure_reason: 'terminal_error',
  last_error: "it's \\ \u{1f4a5}",
} satisfies Letter

const by = 'ann'
const places: readonly [Place][] = [['moved'], ['quarantined']]
const placesAndWays = places.flatMap(([place]) => ways.map((way): [Place, Way] => [place, way]))

describe.each(placesAndWays)('replay of a dead letter that was %s, by %s', (place, way) => {
  const replay: Replayer = (id, options) => replayer(way, deadLetters, pool)(id, options)

  test('keeps what the message is, and forgets what became of it (X-13)', async () => {
    await layDown(database, place, [full])

    const result = await replay(id.toUpperCase(), { by })

    const [message, ...others] = await rowsOf('outbox')
    expect(result).toEqual({ replayed: true, lands: 'anywhere' })
    expect(others).toEqual([])
    expect(await rowsOf('outbox_dead')).toEqual([])
    expect(message).toMatchObject({
      id,
      queue: 'orders',
      key: 'k 1',
      timer_id: 't 1',
      fired_timer_id: null,
      headers: full.headers,
      body: Buffer.from(full.body),
      created_at: new Date('2026-01-01T00:00:00.123Z'),
      generation: '9',
      attempts: 0,
      deliveries: 0,
      first_attempt_at: null,
      last_attempt_at: null,
      lease_token: null,
      leased_until: null,
      failed_at: null,
      failure_reason: null,
      last_error: null,
    })
    expect(await deadLetters.get(id)).toBeNull()
  })

  test('appends the cycle that ended to the history, the newest last', async () => {
    const failure_history = { dropped: 0, cycles: [{ attempts: 1, reason: 'before' }] }
    await layDown(database, place, [{ ...full, failure_history }])

    await replay(id, { by: "o'ann \u{1f4a5}", generation: 10 })

    const [row] = await database.query<Row>(
      `select failure_history, to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as today from outbox`,
    )
    const finished = {
      attempts: 3,
      deliveries: 5,
      firstAttemptAt: '2026-01-01T00:00:01.000001Z',
      lastAttemptAt: '2026-01-01T00:00:02.000000Z',
      failedAt: '2026-01-01T00:00:03.123456Z',
      reason: 'terminal_error',
      error: full.last_error,
      replayedAt: expect.stringMatching(`^${row!['today']}T[0-9:]{8}[.][0-9]{6}Z$`),
      replayedBy: "o'ann \u{1f4a5}",
      generationBefore: 9,
      generationAfter: 10,
      operation: null,
    }
    expect(row!['failure_history']).toEqual({ dropped: 0, cycles: [failure_history.cycles[0], finished] })
  })

  test('keeps twenty cycles, and counts those that it drops', async () => {
    const cycles = Array.from({ length: 20 }, (_, n) => ({ reason: `cycle ${n}` }))
    await layDown(database, place, [{ ...full, failure_history: { dropped: 4, cycles } }])

    await replay(id, { by })

    const [row] = await rowsOf('outbox')
    const { dropped, cycles: kept } = row!['failure_history'] as {
      dropped: number
      cycles: { reason: string }[]
    }
    expect(dropped).toBe(5)
    expect(kept.map(({ reason }) => reason)).toEqual([
      ...cycles.slice(1).map(({ reason }) => reason),
      'terminal_error',
    ])
  })

  test.each([[[]], ['x'], [{ dropped: 'x', cycles: { a: 1 } }], [{ dropped: null }]])(
    'is not stopped by a history of another shape: %j',
    async (failure_history) => {
      await layDown(database, place, [{ ...full, failure_history }])

      expect(await replay(id, { by })).toEqual({ replayed: true, lands: 'anywhere' })
      const [row] = await rowsOf('outbox')
      expect(row).toMatchObject({ failure_history: { dropped: 0, cycles: [{ replayedBy: by }] } })
    },
  )

  test('of one that dies again is listed with its history, in dates', async () => {
    await layDown(database, place, [full])
    await replay(id, { by })
    const [row] = await rowsOf('outbox')
    await database.query('delete from outbox')
    await layDown(database, place, [{ ...full, timer: 'x', failure_history: row!['failure_history'] }])

    const letter = await deadLetters.get(id)

    expect(letter?.failureHistory).toEqual({
      dropped: 0,
      cycles: [
        {
          attempts: 3,
          deliveries: 5,
          firstAttemptAt: new Date('2026-01-01T00:00:01Z'),
          lastAttemptAt: new Date('2026-01-01T00:00:02Z'),
          failedAt: new Date('2026-01-01T00:00:03.123Z'),
          reason: 'terminal_error',
          error: full.last_error,
          replayedAt: expect.any(Date),
          replayedBy: by,
          generationBefore: 9,
          generationAfter: 9,
          operation: null,
        },
      ],
    })
  })

  test.each([
    [9, undefined, '9'],
    [9, 0, '0'],
    [undefined, 7, '7'],
    [undefined, undefined, null],
  ])('of generation %s, told %s, is of generation %s', async (before, given, after) => {
    const [one] = await layDown(database, place, [before === undefined ? {} : { generation: before }])

    await replay(one!, given === undefined ? { by } : { by, generation: given })

    expect(await rowsOf('outbox')).toMatchObject([{ generation: after }])
  })

  test('changes nothing while a timer of the same name waits, and says so', async () => {
    await layDown(database, place, [full])
    await outbox.publishNow('orders', 'new', { timerId: 't 1', delayMs: 3_600_000 })
    const before = await both()

    const result = await replay(id, { by })

    expect(result).toEqual({ replayed: false, because: 'timer_conflict' })
    expect(await both()).toEqual(before)
  })

  test('takes the name of its timer back: no other of that name can be armed', async () => {
    await layDown(database, place, [full])
    // Of the same name, but of another queue.
    await outbox.publishNow('emails', 'new', { timerId: 't 1', delayMs: 3_600_000 })

    const result = await replay(id, { by })

    expect(result).toEqual({ replayed: true, lands: 'anywhere' })
    expect(await outbox.publishNow('orders', 'new', { timerId: 't 1', delayMs: 3_600_000 })).toBeNull()
  })

  test('is told that there is nothing the second time', async () => {
    await layDown(database, place, [full])
    await replay(id, { by })

    expect(await replay(id, { by })).toEqual({ replayed: false, because: 'not_found' })
    expect(await rowsOf('outbox')).toHaveLength(1)
  })

  test('leaves others alone: another id, and an older dead letter of the same id', async () => {
    const [other] = await layDown(database, place, [
      {},
      { id, failed_at: '2026-01-01T00:00:03.123455Z' },
      full,
    ])

    await replay(id, { by })

    const left = (await deadLetters.list()).items
    expect(left.map((letter) => letter.id).sort()).toEqual([id, other].sort())
    expect(await deadLetters.get(id)).toMatchObject({
      failedAt: new Date('2026-01-01T00:00:03.123Z'),
      key: null,
    })
  })

  test('is delivered again, as if for the first time', async () => {
    const messages = collector<unknown>('messages')
    const consumer = outboxOf()
    consumer.subscribe('orders', (message) => messages.add(message))
    await layDown(database, place, [full])
    await using _running = await consumer.start()

    await replay(id, { by })

    const [message] = await messages.take(1)
    expect(message).toMatchObject({
      id,
      key: 'k 1',
      body: { orderId: 1 },
      headers: full.headers,
      createdAt: new Date('2026-01-01T00:00:00.123Z'),
      attempt: 1,
      deliveries: 1,
    })
  })
})

describe.each(places)('replay of a dead letter that was %s', (place) => {
  test('is due when the delay has passed, by the clock of the database', async () => {
    await layDown(database, place, [full])

    await deadLetters.replay(id, { by, delayMs: 3_600_000 })

    const [row] = await database.query<Row>(
      `select due_at > now() + interval '59 minutes' and due_at <= now() + interval '1 hour' as is_in_an_hour from outbox`,
    )
    expect(row).toEqual({ is_in_an_hour: true })
  })

  test.each([
    ['always', 0, ['orders']],
    ['always', 9_000, ['orders']],
    ['always', 20_000, []],
    ['poll', 0, []],
    // Nobody sleeps: whoever is awake finds it.
    ['quiet', 0, []],
  ] as const)('with wake %j and a delay of %i ms tells %j', async (wake, delayMs, told) => {
    const heard = await listening()
    await layDown(database, place, [full])

    await outboxOf({ wake }).deadLetters.replay(id, { by, delayMs })
    await database.query(`select pg_notify($1, 'the end')`, [channel])

    await heard.find((payload) => payload === 'the end')
    expect(heard.all).toEqual([...told, 'the end'])
  })

  test('by the SQL function tells its queue whatever the option is: the function does not know it', async () => {
    const heard = await listening()
    await layDown(database, place, [full])

    await replayer('the SQL function', deadLetters, pool)(id, { by })
    await database.query(`select pg_notify($1, 'the end')`, [channel])

    await heard.find((payload) => payload === 'the end')
    expect(heard.all).toEqual(['orders', 'the end'])
  })
})

test.each(ways)(
  'a moved one comes to the end of its queue, a quarantined one is due where it lies (%s)',
  async (way) => {
    const replay = replayer(way, deadLetters, pool)
    const [quarantined] = await layDown(database, 'quarantined', [{}])
    await database.query(`insert into outbox (id, queue, body) values (gen_random_uuid(), 'orders', '1')`)
    const [moved] = await layDown(database, 'moved', [{}])

    await replay(moved!, { by })
    await replay(quarantined!, { by })

    const rows = await database.query<Row>(
      'select seq, id, due_at <= clock_timestamp() as is_due from outbox order by seq',
    )
    expect(rows).toEqual([
      { seq: '100', id: quarantined, is_due: true },
      { seq: '101', id: expect.any(String), is_due: null },
      { seq: '102', id: moved, is_due: null },
    ])
  },
)

test.each(ways)('an id that lives, or that nobody knows, is not found (%s)', async (way) => {
  const replay = replayer(way, deadLetters, pool)
  await database.query(`insert into outbox (id, queue, body) values ($1, 'orders', '1')`, [id])
  const before = await both()

  const result = await replay(id, { by })

  expect(result).toEqual({ replayed: false, because: 'not_found' })
  expect(await both()).toEqual(before)
})

test('postgres.js lists and replays, too', async () => {
  const sql = database.postgresJs()
  onTestFinished(() => sql.end())
  const { deadLetters: letters } = outboxOf({ database: sql })
  await layDown(database, 'moved', [full, {}])

  const page = await letters.list({ queue: 'orders', since: new Date(0), search: 'S \\', limit: 1 })
  const rest = await letters.list({ limit: 1, after: (await letters.list({ limit: 1 })).next! })
  const counted = await letters.count({ until: new Date() })
  const result = await letters.replay(id, { by, generation: 3, delayMs: 1 })

  expect(page.items).toMatchObject([{ id }])
  expect(rest.items).toMatchObject([{ id }])
  expect(counted).toEqual({ count: 2, atLeast: false })
  expect(result).toEqual({ replayed: true, lands: 'anywhere' })
})
