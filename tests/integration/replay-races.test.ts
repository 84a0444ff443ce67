// Several operators, and timers that are armed meanwhile: transactions of others that are open while a replay comes.
import type pg from 'pg'
import { createOutbox, type OwnHandle, type ReplayResult } from 'postbox'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import { useDatabase } from '../support/database.ts'
import { layDown, type Place } from '../support/dead-letters.ts'
import { callReplay, replayer, resultOf, type Way, ways } from '../support/replayers.ts'
import { withSettings } from '../support/sessions.ts'
import { eventually } from '../support/signals.ts'

const database = useDatabase()
const names = resolveNames({ schema: database.schema, table: 'outbox' })
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema, logger: false }).migrate()
})

beforeEach(async () => {
  await database.query('truncate outbox, outbox_dead')
})

/** Somebody's open transaction; rolled back when the test ends, if it is still open then. */
async function begin(): Promise<pg.PoolClient> {
  const client = await pool.connect()
  onTestFinished(async () => {
    await client.query('rollback')
    client.release()
  })
  await client.query('begin')
  return client
}

/** A replay in a transaction that stays open. */
async function replayIn(client: pg.ClientBase, id: string, way: Way = 'deadLetters.replay'): Promise<string> {
  if (way === 'the SQL function') return (await client.query(callReplay, [id, null, 'ann'])).rows[0].answer
  const rules = { by: 'ann', generation: null, delayMs: 0, historyLimit: 20, wake: 'quiet' } as const
  const { text, values } = replayDeadLetter(names, { id, ...rules })
  const { rows } = await client.query(text, [...values])
  return rows[0].answer
}

/** Another operator, with a client of his own, whose transactions are of this isolation unless told otherwise: he tells, or the library. */
function operator(isolation: string, way: Way = 'deadLetters.replay'): (id: string) => Promise<ReplayResult> {
  const settings = { default_transaction_isolation: isolation }
  const own = database.pool({ connectionString: withSettings(database.url, settings) })
  onTestFinished(() => own.end())
  const queryOf =
    (client: pg.Pool | pg.PoolClient) =>
    async (text: string, values: readonly unknown[]): Promise<readonly unknown[]> =>
      (await client.query(text, [...values])).rows
  const transaction = async <T>(work: (tx: Pick<OwnHandle, 'query'>) => Promise<T>): Promise<T> => {
    const client = await own.connect()
    try {
      await client.query('begin')
      const result = await work({ query: queryOf(client) })
      await client.query('commit')
      return result
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  }
  if (way === 'the SQL function') {
    return (id) =>
      transaction(async (tx) => {
        await tx.query('set transaction isolation level read committed', [])
        const [row] = await tx.query(callReplay, [id, null, 'ben'])
        return resultOf((row as { answer: string }).answer)
      })
  }
  const outbox = createOutbox({
    database: { query: queryOf(own), transaction },
    schema: database.schema,
    logger: false,
  })
  return (id) => outbox.deadLetters.replay(id, { by: 'ben' })
}

const somebodyWaits = (): Promise<unknown> =>
  eventually(
    async () => {
      const waiting = await database.query(
        `select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'`,
        [database.applicationName],
      )
      return waiting.length === 1
    },
    { what: 'the replay to wait' },
  )

const messages = (): Promise<Record<string, unknown>[]> =>
  database.query('select id, timer_id, failure_history, failed_at from outbox order by seq')

const deadCount = async (): Promise<number> => (await database.query('select from outbox_dead')).length

const armed = `insert into outbox (id, queue, body, timer_id, due_at) values (gen_random_uuid(), 'orders', '1', 't', now() + interval '1 h')`

describe.each(
  (['moved', 'quarantined'] as const).flatMap((place) =>
    ['read committed', 'repeatable read', 'serializable'].flatMap((isolation) =>
      ways.map((way): [Place, string, Way] => [place, isolation, way]),
    ),
  ),
)('a dead letter that was %s, where transactions are %s by default, by %s', (place, isolation, way) => {
  test('is replayed by one of two operators, and the other is told (X-14)', async () => {
    const [id] = await layDown(database, place, [{}])
    const ben = operator(isolation, way)
    const ann = await begin()
    const first = await replayIn(ann, id!, way)

    const second = ben(id!)
    await somebodyWaits()
    await ann.query('commit')

    expect(first).toBe('replayed')
    expect(await second).toEqual({ replayed: false, because: 'already_replayed' })
    expect(await messages()).toMatchObject([
      { id, failed_at: null, failure_history: { cycles: [{ replayedBy: 'ann' }] } },
    ])
    expect(await deadCount()).toBe(0)
  })

  test('is replayed by the second operator when the first one rolls back', async () => {
    const [id] = await layDown(database, place, [{}])
    const ben = operator(isolation, way)
    const ann = await begin()
    await replayIn(ann, id!, way)

    const second = ben(id!)
    await somebodyWaits()
    await ann.query('rollback')

    expect(await second).toEqual({ replayed: true, lands: 'anywhere' })
    expect(await messages()).toMatchObject([
      { id, failed_at: null, failure_history: { cycles: [{ replayedBy: 'ben' }] } },
    ])
  })

  test('stays where it is when a timer of its name, armed meanwhile, is committed', async () => {
    const [id] = await layDown(database, place, [{ timer: 't' }])
    const ben = operator(isolation, way)
    const arming = await begin()
    await arming.query(armed)

    const replay = ben(id!)
    await somebodyWaits()
    await arming.query('commit')

    expect(await replay).toEqual({ replayed: false, because: 'timer_conflict' })
    const rows = await messages()
    expect(rows.filter(({ id: one }) => one !== id)).toMatchObject([{ timer_id: 't' }])
    expect(rows.filter(({ id: one }) => one === id).length + (await deadCount())).toBe(1)
  })

  test('is replayed with its name when a timer of that name, armed meanwhile, is rolled back', async () => {
    const [id] = await layDown(database, place, [{ timer: 't' }])
    const ben = operator(isolation, way)
    const arming = await begin()
    await arming.query(armed)

    const replay = ben(id!)
    await somebodyWaits()
    await arming.query('rollback')

    expect(await replay).toEqual({ replayed: true, lands: 'anywhere' })
    expect(await messages()).toMatchObject([{ id, timer_id: 't' }])
    expect(await deadCount()).toBe(0)
  })
})

const placesAndWays = (['moved', 'quarantined'] as const).flatMap((place) =>
  ways.map((way): [Place, Way] => [place, way]),
)

test.each(placesAndWays)(
  'a replay that is rolled back leaves everything as it was (%s, by %s)',
  async (place, way) => {
    const everything = (): Promise<unknown> =>
      Promise.all([database.query('select * from outbox'), database.query('select * from outbox_dead')])
    const [id] = await layDown(database, place, [{ timer: 't', last_error: 'no' }])
    const before = await everything()
    const ann = await begin()

    await replayIn(ann, id!, way)
    await ann.query('rollback')

    expect(await everything()).toEqual(before)
  },
)

test('of twenty operators at once one replays each dead letter, and nobody gets an error', async () => {
  const ids = [
    ...(await layDown(database, 'moved', [{ timer: 'a' }, {}])),
    ...(await layDown(database, 'quarantined', [{ timer: 'b' }, {}])),
  ]
  const { deadLetters } = createOutbox({ database: pool, schema: database.schema, logger: false })
  // Half of them by either way.
  const replays = ways.map((way) => replayer(way, deadLetters, pool))
  const one = (id: string, n: number): Promise<ReplayResult> => replays[n % 2]!(id, { by: 'ben' })

  const results = await Promise.all(
    ids.map((id) => Promise.all(Array.from({ length: 20 }, (_, n) => one(id, n)))),
  )

  expect(results.map((ofOne) => ofOne.filter(({ replayed }) => replayed).length)).toEqual([1, 1, 1, 1])
  expect(await messages()).toHaveLength(4)
  expect(await deadCount()).toBe(0)
})

test.each(ways)(
  'of two dead letters with one timer name, replayed at once, one is replayed and the other stays (%s)',
  async (way) => {
    const [moved] = await layDown(database, 'moved', [{ timer: 't' }])
    const [quarantined] = await layDown(database, 'quarantined', [{ timer: 't' }])
    const ben = operator('read committed', way)
    const ann = await begin()
    await replayIn(ann, moved!, way)

    const replay = ben(quarantined!)
    await somebodyWaits()
    await ann.query('commit')

    expect(await replay).toEqual({ replayed: false, because: 'timer_conflict' })
  },
)

// Whoever asks for a snapshot that nobody changes gets what Postgres answers then: try again.
test.each(placesAndWays.filter(([, way]) => way === 'the SQL function'))(
  'in a repeatable read transaction the second of two operators is told to try again, and changes nothing (%s, by %s)',
  async (place, way) => {
    const [id] = await layDown(database, place, [{}])
    const ann = await begin()
    const ben = await database.client()
    onTestFinished(() => ben.end())
    await ben.query('begin isolation level repeatable read')
    await replayIn(ann, id!, way)

    const second = expect(replayIn(ben, id!, way)).rejects.toMatchObject({ code: '40001' })
    await somebodyWaits()
    await ann.query('commit')

    await second
    expect(await messages()).toMatchObject([{ id, failure_history: { cycles: [{ replayedBy: 'ann' }] } }])
  },
)
