// What looks at ordered queues cost, as counts, on tables of two sizes: the same.
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { expect, onTestFinished, test } from 'vitest'
import { parseSnapshot } from '../../packages/postbox/src/core/horizon.ts'
import type { Draft } from '../../packages/postbox/src/core/message.ts'
import { createOrderedClaimer } from '../../packages/postbox/src/runtime/claim-order.ts'
import {
  claimInOrder,
  type OrderedClaimRow,
  type OrderedQueue,
  type OrderedQueueRow,
} from '../../packages/postbox/src/sql/claim-in-order.ts'
import { mostRowLooks } from '../../packages/postbox/src/sql/first-rows.ts'
import { insertMessages } from '../../packages/postbox/src/sql/insert-messages.ts'
import { joinKeys } from '../../packages/postbox/src/sql/join-keys.ts'
import { mostKeyLocks } from '../../packages/postbox/src/sql/lock-keys.ts'
import { type Names, resolveNames } from '../../packages/postbox/src/sql/names.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import type { TestDatabase } from './database.ts'
import { type Exchange, openTransaction, openWorker } from './sessions.ts'
import { eventually } from './signals.ts'
import { readStatement, type StatementReading } from './statement-plan.ts'

const room = 500
const fromStart: OrderedQueue = {
  queue: 'orders',
  room,
  leaseMs: 60_000,
  after: '0',
  dueFromMs: null,
  keys: [],
  keysFrom: null,
}

/** Rows of queue `orders` by SQL; `n` counts them. */
async function fillKeys(
  database: TestDatabase,
  rows: number,
  { key, laterKey = 'null', dueAt = 'null' }: { key: string; laterKey?: string; dueAt?: string },
): Promise<void> {
  await database.query(
    `insert into outbox (id, queue, key, later_key, due_at, body)
     select md5(n::text)::uuid, 'orders', ${key}, ${laterKey}, ${dueAt}, '{"n":1}' from generate_series(1, $1::int) as n`,
    [rows],
  )
}

/** Rows of a hundred keys, of which the first are to be tried again in an hour. */
const blockedKeys = 100
const blocked = {
  key: `'blocked ' || n % ${blockedKeys}`,
  dueAt: `case when n <= ${blockedKeys} then now() + interval '1 hour' end`,
}
const longDue = `now() - interval '1 day' + n * interval '1 ms'`

/** What a table of so many rows may hold. */
const states = {
  'a row for each key': (database: TestDatabase, rows: number) =>
    fillKeys(database, rows, { key: `'k' || n` }),
  'one hot key': (database: TestDatabase, rows: number) => fillKeys(database, rows, { key: `'k1'` }),
  async 'blocked rows in front of free ones'(database: TestDatabase, rows: number) {
    await fillKeys(database, rows, blocked)
    await fillKeys(database, rows, { key: `'k' || n` })
  },
  'rows that are to be tried again': (database: TestDatabase, rows: number) =>
    fillKeys(database, rows, { key: `'k' || n`, dueAt: longDue }),
  async 'timers whose time has come'(database: TestDatabase, rows: number) {
    await fillKeys(database, mostRowLooks, { key: `'k' || n` })
    await fillKeys(database, rows, { key: 'null', laterKey: `'k' || n`, dueAt: longDue })
  },
} as const

/** What a process may ask for. Half of the keys of the third are there, and half have nothing left. */
function looksAt(names: Names, rows: number): Readonly<Record<string, Statement<unknown>>> {
  const claim = (wanted: Partial<OrderedQueue>): Statement<unknown> =>
    claimInOrder(names, { token: randomUUID(), queues: [{ ...fromStart, ...wanted }] })
  const keys = Array.from({ length: 100 }, (_, n) => ({
    key: n % 2 === 0 ? `k${n + 1}` : `none ${n}`,
    after: '0',
  }))
  return {
    'a claim from the start': claim({}),
    'a claim or a walk from the middle': claim({ after: String(rows / 2) }),
    'a claim from the end, behind keys that were settled': claim({ after: String(10 * rows), keys }),
    'a sweep': claim({ keysFrom: '' }),
    'a sweep from the middle': claim({ keysFrom: '', after: String(rows / 2) }),
    'the joining of keys': joinKeys(names, { queues: ['orders'] }),
  }
}

/** The seq behind which a claim looked for fresh rows. */
function beginOf({ statement }: Exchange): number {
  const [queue]: readonly OrderedQueue[] = JSON.parse(String(statement.values[0]))
  return Number(queue?.after)
}

function queueRowOf(claim: Exchange | undefined): OrderedQueueRow | undefined {
  return (claim?.rows as readonly OrderedClaimRow[] | undefined)?.find((row) => row.kind === 'queue')
}

/** A transaction of somebody else began while the claim before was under way: the mark of that one has to wait for it. */
function isHeldUp(claim: Exchange, index: number, all: readonly Exchange[]): boolean {
  const [now, before] = [queueRowOf(claim), queueRowOf(all[index - 1])]
  if (now === undefined || before === undefined) return false
  const known = new Set(parseSnapshot(before.snapshot).running)
  return parseSnapshot(now.snapshot).running.some((xid) => xid < BigInt(before.own) && !known.has(xid))
}

function draftOf(key: string): Draft {
  return {
    id: randomUUID(),
    queue: 'orders',
    key,
    isOrdered: true,
    timerId: null,
    conflict: 'none',
    body: Buffer.from('1'),
    headers: null,
    schedule: { kind: 'now' },
    generation: null,
  }
}

export interface OrderSizes {
  readonly few: number
  readonly many: number
  /** Of one key, of which half are deleted and seen by a snapshot. */
  readonly dead: number
  /** Rows that wait behind others of their key, in front of half as many that do not. */
  readonly blocked: number
}

/**
 * Counts are the same on every run, whatever else the server does: no autovacuum changes what the database believes of the table, and a trigger leaves the writes of
 * what is read out. Versions of rows that were written and given up would lie in the way of the next reading until no snapshot of anybody on the server is
 * older (9,527 pages instead of 5,515). Rows are found and locked as ever.
 */
async function makeTable(database: TestDatabase, pool: pg.Pool): Promise<void> {
  await database.query(`drop schema ${database.schema} cascade`)
  await database.query(`create schema ${database.schema}`)
  await createOutbox({ database: pool, schema: database.schema, logger: false }).migrate()
  await database.query('alter table outbox set (autovacuum_enabled = off)')
  await database.query(
    `create function write_nothing() returns trigger language plpgsql as 'begin return null; end'`,
  )
  await database.query(
    'create trigger write_nothing before update or delete on outbox for each row execute function write_nothing()',
  )
}

async function letWrite(database: TestDatabase): Promise<void> {
  await database.query('alter table outbox disable trigger write_nothing')
}

async function letNothingWrite(database: TestDatabase): Promise<void> {
  await database.query('alter table outbox enable trigger write_nothing')
}

function expectNoDearer(
  name: string,
  { rows, pages, scans }: StatementReading,
  few?: StatementReading,
): void {
  expect({ name, rows }).toEqual({ name, rows: few?.rows })
  // Indexes of more rows are higher by a page or two, for each of the thousands that are looked up.
  expect(pages, name).toBeLessThan(1.6 * (few?.pages ?? 0) + 50)
  expect(
    scans.filter((scan) => scan === 'Seq Scan outbox'),
    name,
  ).toEqual([])
}

export function describeOrderCosts(database: TestDatabase, pool: () => pg.Pool, sizes: OrderSizes): void {
  const names = resolveNames({ schema: database.schema, table: 'outbox' })
  /** What it reads, undone. */
  const readingOf = async (statement: Statement<unknown>): Promise<StatementReading> => {
    const client = await pool().connect()
    try {
      await client.query('begin')
      return await readStatement(client, statement)
    } finally {
      await client.query('rollback')
      client.release()
    }
  }
  const readAll = async (rows: number): Promise<ReadonlyMap<string, StatementReading>> => {
    const readings = new Map<string, StatementReading>()
    for (const [name, statement] of Object.entries(looksAt(names, rows)))
      readings.set(name, await readingOf(statement))
    return readings
  }

  test.each(Object.entries(states))(
    'with %s, no look at many rows costs more than at few, whether the table was analysed or not',
    async (_, fillState) => {
      const read = async (rows: number) => {
        await makeTable(database, pool())
        await fillState(database, rows)
        const unknown = await readAll(rows)
        await database.query('analyze outbox')
        return { 'never analysed': unknown, analysed: await readAll(rows) }
      }

      const few = await read(sizes.few)
      const many = await read(sizes.many)

      for (const belief of ['never analysed', 'analysed'] as const)
        for (const [name, reading] of many[belief])
          expectNoDearer(`${name}, ${belief}`, reading, few[belief].get(name))
    },
  )

  test('on a table that was analysed while it held one key, the others are looked up by their key', async () => {
    await makeTable(database, pool())
    await fillKeys(database, sizes.many, { key: `'hot'` })
    await database.query('analyze outbox')
    await fillKeys(database, 100, { key: `'k' || n` })

    const readings = await readAll(sizes.many)

    for (const [name, { rows }] of readings)
      expect({ name, isFew: rows < 8_000 }).toEqual({ name, isFew: true })
    expect(readings.get('a claim from the end, behind keys that were settled')?.rows).toBeLessThan(400)
  })

  test('of a thousand rows of a key, one is worth a look at what lies before it', async () => {
    await makeTable(database, pool())
    await fillKeys(database, sizes.few, { key: `'hot'` })

    const { rows } = await readingOf(
      claimInOrder(names, {
        token: randomUUID(),
        queues: [{ ...fromStart, after: String(sizes.few / 2) }],
      }),
    )

    expect(rows).toBeLessThan(mostRowLooks + 10)
  })

  test('under a held snapshot, a claim behind a settled row does not walk over the rows of its key that were deleted', async () => {
    await makeTable(database, pool())
    await fillKeys(database, sizes.dead, { key: `'hot'` })
    const half = String(sizes.dead / 2)
    const wanted = { ...fromStart, after: half, keys: [{ key: 'hot', after: half }] }
    const claim = (): Statement<unknown> => claimInOrder(names, { token: randomUUID(), queues: [wanted] })
    const before = await readingOf(claim())
    const reader = await openTransaction(pool())
    await reader.query('set transaction isolation level repeatable read')
    await reader.query('select count(*) from outbox')
    await letWrite(database)
    await database.query('delete from outbox where seq <= $1', [half])
    await letNothingWrite(database)

    const after = await readingOf(claim())
    const unknown = await readingOf(
      claimInOrder(names, { token: randomUUID(), queues: [{ ...wanted, keys: [] }] }),
    )

    expect(after.rows).toBe(before.rows)
    expect(after.pages).toBeLessThan(1.2 * before.pages + 50)
    // The reading can see dead rows: whoever does not know where the key goes on walks over them.
    expect(unknown.pages).toBeGreaterThan(after.pages + sizes.dead / 300)
  })

  test('free rows behind blocked ones are found by claims that begin a thousand rows behind each other, two at each place', async () => {
    await makeTable(database, pool())
    await letWrite(database)
    await fillKeys(database, sizes.blocked, blocked)
    await fillKeys(database, sizes.blocked / 2, { key: `'k' || n` })
    onTestFinished(async () => void (await database.query('truncate outbox')))
    const worker = openWorker(pool(), database.schema)
    const claimer = createOrderedClaimer({ lane: worker.lane, names: worker.names, clock: worker.clock })
    const demand = { queue: 'orders', room, leaseMs: 60_000, isOrdered: true }
    const isFull = async (): Promise<boolean> => {
      // Transactions of others on this server hold a cursor back no longer than this.
      worker.clock.advance(250)
      const [found] = await claimer.claim([demand], 'claim')
      return found?.held.length === room
    }
    await eventually(isFull, { what: 'a claim that finds as many as it may take', withinMs: 600_000 })

    const looks = Math.ceil((sizes.blocked - blockedKeys) / mostRowLooks)
    const begins = Array.from({ length: looks }, (_, n) => blockedKeys + (n + 1) * mostRowLooks)
    expect([...new Set(worker.exchanges.map(beginOf))]).toEqual([0, ...begins])
    const ours = worker.exchanges.filter((...claim) => !isHeldUp(...claim))
    expect(ours.length).toBeLessThanOrEqual(2 * looks + 1)
  })

  test('a publisher of ordered messages looks at none of those that are there', async () => {
    await makeTable(database, pool())
    await fillKeys(database, sizes.many, { key: `'k' || n` })
    const publish = (count: number): Statement<unknown> => {
      const drafts = Array.from({ length: count }, (_, n) => draftOf(`k${n}`))
      return insertMessages(
        names,
        { queue: 'orders', conflict: 'none', drafts },
        { wake: 'quiet', mark: null },
      )
    }

    const one = await readingOf(publish(1))
    const more = await readingOf(publish(mostKeyLocks))
    const gated = await readingOf(publish(mostKeyLocks + 1))

    for (const { scans } of [one, more, gated])
      expect(scans.filter((scan) => scan.includes('outbox'))).toEqual([])
  })
}
