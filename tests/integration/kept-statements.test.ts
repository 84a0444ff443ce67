// Statements that a session of pg keeps parsed: planned for the table as it is, each time, and done without where a name is refused.
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Session } from '../../packages/postbox/src/adapters/executor.ts'
import { recogniseDatabase } from '../../packages/postbox/src/adapters/recognise.ts'
import { claimFresh } from '../../packages/postbox/src/sql/claim-fresh.ts'
import { claimInOrder } from '../../packages/postbox/src/sql/claim-in-order.ts'
import { claimMessages } from '../../packages/postbox/src/sql/claim-messages.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { resolveNames } from '../../packages/postbox/src/sql/names.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { useDatabase } from '../support/database.ts'
import { useFreshTable } from '../support/plan.ts'
import { fill, openWorker, withSettings } from '../support/sessions.ts'
import { readExecuted, readStatement } from '../support/statement-plan.ts'

const database = useDatabase()
const names = resolveNames({ schema: database.schema, table: 'outbox' })
const rows = 20_000
const room = 500
const runs = 10
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool()
})

useFreshTable(database, () => pool)

/** The only connection of a pool, as a lane has it, and the client that is behind it. */
async function openSession(settings: Readonly<Record<string, string>> = {}) {
  const own = database.pool({ connectionString: withSettings(database.url, settings), max: 1 })
  const connected: pg.PoolClient[] = []
  own.on('connect', (client) => connected.push(client))
  const session: Session = await recogniseDatabase(own)!.connect!(() => {})
  onTestFinished(async () => {
    session.release()
    await own.end()
  })
  return { session, client: connected[0]! }
}

const keptNow: Statement<{ readonly name: string; readonly generic: number; readonly custom: number }> = {
  name: 'kept_now',
  text: 'select name, generic_plans::int as generic, custom_plans::int as custom from pg_prepared_statements',
  values: [],
}

/** Of each statement that is kept, every text that it has. What is deleted is nobody's, so it stays. */
function keptStatements(): readonly Statement<unknown>[] {
  const token = randomUUID()
  const wanted = { queue: 'orders', room, leaseMs: 60_000, after: '0', dueFromMs: null }
  const keys = Array.from({ length: 100 }, (_, n) => ({ key: `k${n}`, after: '0' }))
  const ordered = [
    { keys: [], keysFrom: null },
    { keys, keysFrom: null },
    { keys: [], keysFrom: '' },
    { keys, keysFrom: '' },
  ]
  const fences = Array.from({ length: room }, (_, n) => ({ seq: `${n + 1}`, token }))
  const pairs = fences.map((fence) => ({ ...fence, token: randomUUID() }))
  return [
    claimMessages(names, { token, queues: [{ ...wanted, sweep: true }] }),
    claimMessages(names, { token, queues: [{ ...wanted, sweep: true }], generation: 1 }),
    claimFresh(names, { token, queue: 'orders', room, leaseMs: 60_000, after: '0' }),
    claimFresh(names, { token, queue: 'orders', room, leaseMs: 60_000, after: '0', generation: 1 }),
    ...ordered.map((asked) => claimInOrder(names, { token, queues: [{ ...wanted, ...asked }] })),
    deleteAcked(names, fences),
    deleteAcked(names, pairs),
    deleteAcked(names, pairs, { isQuick: true }),
    deleteAcked(names, pairs.slice(0, 1), { isQuick: true }),
    deleteAcked(names, fences, { delivered: 'table' }),
    deleteAcked(names, pairs, { delivered: 'table' }),
    deleteAcked(names, pairs, { delivered: 'table', isQuick: true }),
  ]
}

async function fillKeys(): Promise<void> {
  await database.query(
    `insert into outbox (id, queue, key, body) select gen_random_uuid(), 'orders', 'k' || n % 1000, '1' from generate_series(1, $1::int) as n`,
    [rows],
  )
}

/** Versions that were written and given up would make the table larger from one reading to the next, and the plan another. */
async function letNothingWrite(): Promise<void> {
  await database.query(
    `create function write_nothing() returns trigger language plpgsql as 'begin return null; end'`,
  )
  await database.query(
    'create trigger write_nothing before update or delete on outbox for each row execute function write_nothing()',
  )
}

async function vacuumed(where: string): Promise<void> {
  await fillKeys()
  await database.query(`delete from outbox where ${where}`)
  await database.query('vacuum analyze outbox')
}

/** What the table was while statements were run again and again, and what becomes of it. */
const lives = {
  'that was new and empty, and is full': { before: async () => {}, after: fillKeys },
  'that was vacuumed while it was empty, and is full': { before: () => vacuumed('true'), after: fillKeys },
  'that was vacuumed while it held five rows, and is full': {
    before: () => vacuumed('seq > 5'),
    after: fillKeys,
  },
  'that was full, and is empty': {
    before: () => vacuumed('false'),
    after: () => database.query('delete from outbox'),
  },
} as const

describe.each(Object.entries(lives))('on a table %s', (_, { before, after }) => {
  test('what is kept reads what it would read without a name, for no plan is made without its values', async () => {
    const { session, client } = await openSession()
    const undone = async <T>(work: () => Promise<T>): Promise<T> => {
      await client.query('begin')
      return work().finally(() => client.query('rollback'))
    }
    await before()
    const statements = keptStatements()
    for (const statement of statements)
      for (let run = 0; run < runs; run++) await undone(() => session.run(statement))
    const early = await session.run(keptNow)
    await after()
    await letNothingWrite()

    for (const statement of statements) {
      // What a connection plans first after the table has changed may be another plan than what it plans next, named or not: it comes to know its indexes anew.
      await undone(() => readStatement(client, statement))
      const named = await undone(() => readExecuted(client, statement))
      const plain = await undone(() => readStatement(client, statement))
      expect({ scans: named.scans, rows: named.rows }).toEqual({ scans: plain.scans, rows: plain.rows })
    }
    expect(early).toHaveLength(statements.length)
    expect(early.map(({ generic, custom }) => ({ generic, custom }))).toEqual(
      statements.map(() => ({ generic: 0, custom: runs })),
    )
    expect((await session.run(keptNow)).map(({ generic }) => generic)).toEqual(statements.map(() => 0))
  })
})

test.each(['discard all', 'deallocate all'])(
  'a lane whose names are gone (%s) claims without them: each message once',
  async (text) => {
    const own = database.pool({ max: 2 })
    onTestFinished(() => own.end())
    const worker = openWorker(own, database.schema)
    await fill(database, { rows: 4 })
    await worker.take(1)
    await worker.run({ name: 'by somebody else', text, values: [] })

    const held = [...(await worker.take(2)), ...(await worker.take(2))]

    expect(held.map(({ lease }) => lease.deliveries)).toEqual([1, 1, 1])
    expect(worker.lane.connection).toBe(0)
    expect(await worker.run(keptNow)).toEqual([])
  },
)

test('a name that another process behind the same pooler has given already is done without', async () => {
  const claim = (): Statement<unknown> =>
    claimMessages(names, {
      token: randomUUID(),
      queues: [{ queue: 'orders', room: 1, leaseMs: 60_000, after: '0', dueFromMs: null, sweep: false }],
    })
  const other = await openSession()
  await other.session.run(claim())
  const [kept] = await other.session.run(keptNow)
  const { session, client } = await openSession()
  await client.query(`prepare "${kept!.name}" as select 1`)
  await fill(database, { rows: 1 })

  expect(await session.run(claim())).toMatchObject([{ kind: 'queue' }, { kind: 'message' }])
})

test('a kept statement that would give other columns than before is sent without its name', async () => {
  const { session } = await openSession()
  await database.query('create table shapes (a int)')
  await database.query('insert into shapes values (1)')
  const read = { name: 'read', text: 'select * from shapes', keptText: 'select * from shapes', values: [] }
  await session.run(read)
  await database.query('alter table shapes add column b int default 2')

  expect(await session.run(read)).toEqual([{ a: 1, b: 2 }])
})

test('a column that is added to the messages changes nothing for what is kept', async () => {
  const { session } = await openSession()
  const statements = keptStatements()
  for (const statement of statements) await session.run(statement)
  await database.query('alter table outbox add column extra text default 1')

  for (const statement of statements) await session.run(statement)

  expect((await session.run(keptNow)).map(({ custom }) => custom)).toEqual(statements.map(() => 2))
})

test.each([
  ['transactions are not read committed', { default_transaction_isolation: 'repeatable read' }],
  ['plans are made without values', { plan_cache_mode: 'force_generic_plan' }],
])('where %s, a lane keeps nothing', async (_, settings) => {
  const own = database.pool({ connectionString: withSettings(database.url, settings) })
  onTestFinished(() => own.end())
  const worker = openWorker(own, database.schema)
  await fill(database, { rows: 1 })

  expect(await worker.take(2)).toHaveLength(1)
  expect(await worker.run(keptNow)).toEqual([])
})

test('two outboxes that have the same connection in turn find each its own table', async () => {
  await database.query('create table other (like outbox including all)')
  await fill(database, { rows: 1 })
  const own = database.pool({ max: 1 })
  onTestFinished(() => own.end())
  const found: unknown[] = []
  for (const table of ['outbox', 'other', 'outbox']) {
    const session = await recogniseDatabase(own)!.connect!(() => {})
    const fences = [{ seq: '1', token: randomUUID() }]
    await session.run(deleteAcked(resolveNames({ schema: database.schema, table }), fences))
    found.push((await session.run(keptNow)).map(({ custom }) => custom).toSorted())
    session.release()
  }

  expect(found).toEqual([[1], [1, 1], [1, 2]])
})
