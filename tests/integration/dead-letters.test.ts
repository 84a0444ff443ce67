import type pg from 'pg'
import { createOutbox, type DeadLetters, type Outbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type {
  DeadLetterFilter,
  DeadLetterListOptions,
} from '../../packages/postbox/src/core/dead-letter-options.ts'
import { useDatabase } from '../support/database.ts'
import { fillDead, type Letter, layDown, type Place } from '../support/dead-letters.ts'
import { withSettings } from '../support/sessions.ts'

const database = useDatabase()
let pool: pg.Pool
let deadLetters: DeadLetters

beforeAll(async () => {
  pool = database.pool()
  const outbox = outboxOf()
  await outbox.migrate()
  deadLetters = outbox.deadLetters
})

beforeEach(async () => {
  await database.query('truncate outbox, outbox_dead restart identity')
})

function outboxOf(options: object = {}): Outbox {
  return createOutbox({ database: pool, schema: database.schema, logger: false, ...options })
}

const at = (second: number, micros = 0): string =>
  `2026-02-01T00:00:${String(second).padStart(2, '0')}.${String(micros).padStart(6, '0')}Z`

/** One of each place for each letter, the moved one first; both have the same error text as a name. */
async function layDownBoth(letters: readonly Letter[]): Promise<void> {
  for (const place of ['moved', 'quarantined'] as const) {
    await layDown(
      database,
      place,
      letters.map((letter) => ({ ...letter, last_error: `${place} ${letter.last_error ?? ''}`.trim() })),
    )
  }
}

async function errorsOf(options: DeadLetterListOptions = {}): Promise<readonly (string | null)[]> {
  const { items } = await deadLetters.list(options)
  return items.map(({ error }) => error)
}

/** All pages, each of so many. */
async function pages(
  limit: number,
  between = async (_page: number): Promise<void> => {},
): Promise<string[][]> {
  const found: string[][] = []
  let after: string | null = null
  do {
    const page = await deadLetters.list(after === null ? { limit } : { limit, after })
    found.push(page.items.map(({ error }) => String(error)))
    after = page.next
    await between(found.length)
  } while (after !== null)
  return found
}

const full = {
  id: '01890000-0000-7000-8000-00000000000A',
  queue: 'orders',
  key: 'k 1',
  timer: 't 1',
  body: '{"orderId":1}',
  headers: { type: 'order', 'correlation-id': 'c 1' },
  attempts: 3,
  deliveries: 5,
  created_at: '2026-01-01T00:00:00.123Z',
  first_attempt_at: '2026-01-01T00:00:01.5Z',
  last_attempt_at: '2026-01-01T00:00:02Z',
  generation: 9,
  failed_at: '2026-01-01T00:00:03.123456Z',
  failure_reason: 'terminal_error',
  last_error: "it's \\ 100% \u{1f4a5}",
} satisfies Letter

const fullAsRead = {
  id: full.id.toLowerCase(),
  queue: 'orders',
  key: 'k 1',
  timerId: 't 1',
  body: { orderId: 1 },
  headers: full.headers,
  correlationId: 'c 1',
  attempts: 3,
  deliveries: 5,
  createdAt: new Date(full.created_at),
  firstAttemptAt: new Date(full.first_attempt_at),
  lastAttemptAt: new Date(full.last_attempt_at),
  generation: 9,
  failedAt: new Date('2026-01-01T00:00:03.123Z'),
  reason: 'terminal_error',
  error: full.last_error,
  failureHistory: { dropped: 0, cycles: [] },
  raw: Buffer.from(full.body),
}

describe.each([
  ['moved', false],
  ['quarantined', true],
] as const)('a dead letter that was %s', (place: Place, isQuarantined) => {
  test('is listed and got with all that was known of it', async () => {
    await layDown(database, place, [full])

    const page = await deadLetters.list()
    const got = await deadLetters.get(full.id)

    expect(page).toEqual({ items: [{ ...fullAsRead, isQuarantined, isParked: false }], next: null })
    expect(got).toEqual(page.items[0])
  })

  test('that has only what it must have is read, too', async () => {
    const [id] = await layDown(database, place, [{ body: '' }])

    expect(await deadLetters.get(id!)).toMatchObject({
      key: null,
      timerId: null,
      headers: {},
      correlationId: id,
      firstAttemptAt: null,
      lastAttemptAt: null,
      generation: null,
      error: null,
      failureHistory: { dropped: 0, cycles: [] },
    })
  })

  test("shows its body by its queue's codec, and raw where that cannot be done", async () => {
    const codec = {
      contentType: 'text/x-shout',
      encode: (value: unknown) => Buffer.from(String(value)),
      decode: (bytes: Uint8Array) => Buffer.from(bytes).toString().toUpperCase(),
    }
    const headers = { 'content-type': 'text/x-shout' }
    const shouting = outboxOf({ queues: { orders: { codec }, emails: {} } })
    await layDown(database, place, [
      { body: 'hey', headers, failed_at: at(2) },
      { body: '{broken', queue: 'emails', failed_at: at(1) },
    ])

    const { items } = await shouting.deadLetters.list()

    expect(items.map(({ body, raw }) => [body, Buffer.from(raw).toString()])).toEqual([
      ['HEY', 'hey'],
      [undefined, '{broken'],
    ])
  })

  test('of a history that nobody here has written is listed without it', async () => {
    const histories = [[], 'x', { cycles: [1, { attempts: 'x', failedAt: 'never' }], dropped: 'x' }]
    await layDown(
      database,
      place,
      histories.map((failure_history) => ({ failure_history })),
    )

    const { items } = await deadLetters.list()

    expect(items.flatMap(({ failureHistory }) => failureHistory.dropped)).toEqual([0, 0, 0])
    expect(items.flatMap(({ failureHistory }) => failureHistory.cycles)).toEqual([
      expect.objectContaining({ attempts: 0, failedAt: null, replayedBy: '' }),
    ])
  })
})

test('reads the same on a connection whose session writes bytes, times and numbers in ways of its own', async () => {
  const connectionString = withSettings(database.url, {
    bytea_output: 'escape',
    TimeZone: 'Asia/Kolkata',
    DateStyle: 'SQL, DMY',
    IntervalStyle: 'postgres_verbose',
    standard_conforming_strings: 'off',
  })
  const own = database.pool({ connectionString })
  onTestFinished(() => own.end())
  await layDown(database, 'moved', [full, { failed_at: at(1) }])

  const { deadLetters: read } = outboxOf({ database: own })
  const first = await read.list({ limit: 1 })
  const second = await read.list({ limit: 1, after: first.next! })

  expect(first.items).toMatchObject([{ failedAt: new Date(at(1)) }])
  expect(second).toEqual({ items: [{ ...fullAsRead, isQuarantined: false, isParked: false }], next: null })
})

describe('list', () => {
  test('has the newest first, in both places', async () => {
    await layDown(database, 'moved', [
      { failed_at: at(1), last_error: 'one' },
      { failed_at: at(3), last_error: 'three' },
    ])
    await layDown(database, 'quarantined', [
      { failed_at: at(2), last_error: 'two' },
      { failed_at: at(4), last_error: 'four' },
    ])

    expect(await errorsOf()).toEqual(['four', 'three', 'two', 'one'])
  })

  test('shows no message that still lives, whatever its state', async () => {
    await database.query(
      `insert into outbox (id, queue, body, due_at, last_error)
       values (gen_random_uuid(), 'orders', '1', null, null),
              (gen_random_uuid(), 'orders', '1', 'infinity', 'parked'),
              (gen_random_uuid(), 'orders', '1', now(), 'retrying')`,
    )

    expect(await deadLetters.list()).toEqual({ items: [], next: null })
    expect(await deadLetters.count()).toEqual({ count: 0, atLeast: false })
  })

  const letters: readonly Letter[] = [
    { last_error: 'a', queue: 'orders', failed_at: at(5), failure_reason: 'rejected', key: 'k1' },
    { last_error: 'b', queue: 'orders', failed_at: at(4), failure_reason: 'max_deliveries' },
    { last_error: 'c 100% Été', queue: 'emails', failed_at: at(3), failure_reason: 'rejected', key: 'k2' },
    { last_error: "d o'clock a_b", queue: 'emails', failed_at: at(2, 500_000), key: 'k1' },
    { last_error: 'e back\\slash', queue: 'a "queue"; --', failed_at: at(1), failure_reason: 'invalid_body' },
  ]
  const filters: readonly [DeadLetterFilter, string][] = [
    [{}, 'abcde'],
    [{ queue: 'orders' }, 'ab'],
    [{ queue: 'a "queue"; --' }, 'e'],
    [{ queue: 'Orders' }, ''],
    [{ queue: "' or true --" }, ''],
    [{ reason: 'rejected' }, 'acd'],
    [{ reason: 'invalid_body' }, 'e'],
    [{ since: new Date(at(4)) }, 'ab'],
    [{ until: new Date(at(4)) }, 'cde'],
    [{ since: new Date(at(2)), until: new Date(at(4)) }, 'cd'],
    [{ since: new Date(at(4)), until: new Date(at(4)) }, ''],
    [{ key: 'k1' }, 'ad'],
    [{ key: "k1' or 'a' = 'a" }, ''],
    [{ search: '100%' }, 'c'],
    [{ search: '%' }, 'c'],
    [{ search: 'a_b' }, 'd'],
    [{ search: 'BACK\\S' }, 'e'],
    [{ search: "O'Clock" }, 'd'],
    [{ search: '.' }, ''],
    [{ queue: 'emails', reason: 'rejected', key: 'k1', search: 'CLOCK', since: new Date(at(2)) }, 'd'],
    [{ queue: 'emails', key: 'k9' }, ''],
  ]

  test.each(filters)(
    'finds with %j those and no others, in both places, and count agrees',
    async (filter, found) => {
      await layDownBoth(letters)

      const errors = await errorsOf(filter)

      const named = [...found].flatMap((letter) => [`moved ${letter}`, `quarantined ${letter}`])
      expect(errors.map((error) => error?.split(' ').slice(0, 2).join(' '))).toEqual(named)
      expect(await deadLetters.count(filter)).toEqual({ count: named.length, atLeast: false })
    },
  )

  test('finds one without an error unless an error is searched for', async () => {
    await layDown(database, 'moved', [{}])

    expect(await errorsOf()).toEqual([null])
    expect(await errorsOf({ search: 'null' })).toEqual([])
  })

  test('finds the dead letters of a queue that the outbox no longer defines', async () => {
    await layDown(database, 'moved', [{ queue: 'given up', body: '[1]' }])

    const { items } = await outboxOf({ queues: { orders: {} } }).deadLetters.list({ queue: 'given up' })

    expect(items).toMatchObject([{ queue: 'given up', body: [1] }])
  })

  test('gives fifty at once, unless it is told another number', async () => {
    await fillDead(database, 51)

    const page = await deadLetters.list()

    expect(page.items).toHaveLength(50)
    expect((await deadLetters.list({ after: page.next! })).items).toHaveLength(1)
    expect(await deadLetters.list({ limit: 51 })).toMatchObject({ next: null })
  })

  test('pages through rows that failed in the same microsecond, in two places, each of them once', async () => {
    const same = Array.from({ length: 5 }, (_, n) => ({ failed_at: at(2), last_error: String(n) }))
    await layDownBoth([
      { failed_at: at(3), last_error: 'new' },
      ...same,
      { failed_at: at(1), last_error: 'old' },
    ])
    const inOne = (await pages(1_000)).flat()

    expect(inOne).toHaveLength(14)
    for (const limit of [1, 2, 3, 4, 5, 7, 13]) {
      const several = await pages(limit)
      expect(several.flat()).toEqual(inOne)
      expect(several.slice(0, -1).every((page) => page.length === limit)).toBe(true)
    }
  })

  test('tells rows apart that failed within one millisecond', async () => {
    const micros = [1, 2, 3, 4, 5].map((n) => ({ failed_at: at(1, n), last_error: String(n) }))
    await layDown(database, 'moved', micros)

    expect(await pages(1)).toEqual([['5'], ['4'], ['3'], ['2'], ['1']])
  })

  test('neither repeats nor skips a row when others are added or replayed between two pages', async () => {
    const five = [5, 4, 3, 2, 1].map((n) => ({ failed_at: at(n), last_error: String(n) }))
    const [, , , , oldest] = await layDown(database, 'moved', five)

    const found = await pages(2, async (page) => {
      await layDownBoth([{ failed_at: at(10 + page), last_error: 'late' }])
      // What the page before ended with is gone by now.
      if (page === 1) await database.query(`delete from outbox_dead where last_error = '4'`)
      if (page === 2) await deadLetters.replay(oldest!, { by: 'me' })
    })

    expect(found).toEqual([['5', '4'], ['3', '2'], []])
  })
})

describe('get', () => {
  test('has the newest of an id, wherever it is', async () => {
    const id = full.id
    await layDown(database, 'moved', [
      { id, failed_at: at(1), last_error: 'one' },
      { id, failed_at: at(3), last_error: 'three' },
    ])
    const three = await deadLetters.get(id)
    await layDown(database, 'quarantined', [{ id, failed_at: at(4), last_error: 'four' }])
    const four = await deadLetters.get(id)

    expect([three?.error, four?.error]).toEqual(['three', 'four'])
  })

  test('has nothing for an id that is unknown, or that still lives', async () => {
    await database.query(`insert into outbox (id, queue, body) values ($1, 'orders', '1')`, [full.id])

    expect(await deadLetters.get(full.id)).toBeNull()
  })
})

test.each([
  ['list', () => outboxOf({ table: 'never_made' }).deadLetters.list()],
  ['get', () => outboxOf({ table: 'never_made' }).deadLetters.get(full.id)],
  ['count', () => outboxOf({ table: 'never_made' }).deadLetters.count()],
  ['replay', () => outboxOf({ table: 'never_made' }).deadLetters.replay(full.id, { by: 'me' })],
])('%s says what to do when the tables were never made', async (_, call) => {
  await expect(call()).rejects.toMatchObject({ code: 'OUTBOX_SCHEMA_MISSING' })
})
