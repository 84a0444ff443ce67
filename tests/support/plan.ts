// Plans of claims as they were run, told by the connection that ran them (what EXPLAIN says on another may differ), and the sentences
// about them that must hold for tables of any size.
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import type { TestDatabase } from './database.ts'
import { fillDead } from './dead-letters.ts'
import {
  fencesOf,
  fill,
  lastAsked,
  openTransaction,
  openWorker,
  passBy,
  type Worker,
  withSettings,
} from './sessions.ts'

/** A part of a plan that reads the messages: how, by which index, and how much. */
export interface Scan {
  readonly how: string
  /** Rows it looked at, those that it passed over included. Dead ones do not count here. */
  readonly rows: number
  /** Pages it read. Dead rows do count here. */
  readonly pages: number
}

/** What a claim's plan comes to. */
export interface Reading {
  /** The due lane, then the fresh one. */
  readonly lanes: readonly Scan[]
  /** Everything else that reads the messages: the next due time, the lowest seq, the rows to update by their place. */
  readonly others: readonly Scan[]
  readonly sorts: number
  readonly cost: number
  readonly isCompiled: boolean
}

export interface ExplainedWorker {
  readonly worker: Worker
  /** The plan of the last claim. */
  lastClaim(): Reading
}

/** A worker whose connection tells the plan of each statement, in a notice (auto_explain is a part of every Postgres). */
export function explainedWorker(
  database: TestDatabase,
  settings: Readonly<Record<string, string>> = {},
  generation: number | null = null,
): ExplainedWorker {
  const claims: Explained[] = []
  const connectionString = withSettings(database.url, {
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '0',
    'auto_explain.log_analyze': 'on',
    'auto_explain.log_buffers': 'on',
    'auto_explain.log_timing': 'off',
    'auto_explain.log_format': 'json',
    'auto_explain.log_level': 'notice',
    ...settings,
  })
  const pool = database.pool({ connectionString })
  onTestFinished(() => pool.end())
  pool.on('connect', (client) => {
    client.on('notice', ({ message = '' }) => {
      const isClaim = message.startsWith('duration:') && message.includes('CTE picked')
      if (isClaim) claims.push(JSON.parse(message.slice(message.indexOf('{'))))
    })
  })
  return {
    worker: openWorker(pool, database.schema, generation),
    lastClaim() {
      const claim = claims.at(-1)
      if (claim === undefined) throw new Error('nothing was claimed')
      return readingOf(claim)
    },
  }
}

interface Explained {
  readonly Plan: PlanNode
  readonly JIT?: object
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Subplan Name'?: string
  readonly 'Total Cost': number
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly 'Rows Removed by Index Recheck'?: number
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly PlanNode[]
}

function readingOf({ Plan, JIT }: Explained): Reading {
  const all = below(Plan)
  const picked = all.filter((node) => node['Subplan Name'] === 'CTE picked').flatMap(below)
  const scans = all.filter(
    (node) => node['Relation Name'] === 'outbox' && node['Node Type'] !== 'ModifyTable',
  )
  return {
    lanes: scans.filter((node) => picked.includes(node)).map(scanOf),
    others: scans.filter((node) => !picked.includes(node)).map(scanOf),
    sorts: all.filter((node) => node['Node Type'].includes('Sort')).length,
    cost: Plan['Total Cost'],
    isCompiled: JIT !== undefined,
  }
}

function below(node: PlanNode): readonly PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(below)]
}

function scanOf(node: PlanNode): Scan {
  const passedOver = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  return {
    how: [node['Node Type'], node['Index Name']].filter((word) => word !== undefined).join(' '),
    rows: Math.round((node['Actual Rows'] + passedOver) * node['Actual Loops']),
    pages: node['Shared Hit Blocks'] + node['Shared Read Blocks'],
  }
}

// Above this, Postgres compiles a statement (jit) where it can: 130 to 590 ms of a claim that runs in three.
const jitAboveCost = 100_000

/** Each lane by its own index and in the index's order, no more than `most` rows looked at, nothing else read but by index or place. */
export function expectCheap(reading: Reading, most: number): void {
  expectInOrder(reading)
  // The next due time and the lowest seq are one row each, and no more is updated than was taken.
  const beside = reading.others.reduce((sum, { rows }) => sum + rows, 0)
  expect(beside, `rows looked at beside, by ${JSON.stringify(reading)}`).toBeLessThanOrEqual(most + 40)
  const looked = reading.lanes.reduce((sum, { rows }) => sum + rows, 0)
  expect(looked, `rows looked at, by ${JSON.stringify(reading)}`).toBeLessThanOrEqual(most)
  expect(reading.cost).toBeLessThan(jitAboveCost)
  expect(reading.isCompiled).toBe(false)
}

/** The part of it that must hold for a plan made without knowing the values, too. */
export function expectInOrder({ lanes, others, sorts }: Reading): void {
  expect({ lanes: lanes.map(({ how }) => how), others: others.map(({ how }) => how), sorts }).toEqual({
    lanes: ['Index Scan outbox_due', 'Index Scan outbox_ready'],
    others: ['Tid Scan', 'Index Only Scan outbox_due', 'Index Only Scan outbox_ready'],
    sorts: 0,
  })
}

const soon = `now() - interval '1 hour' + n * interval '1 ms'`
const later = `now() + interval '1 hour' + n * interval '1 ms'`

/** So many rows ready, as many scheduled for later, and 300 whose time has come. */
async function fillBoth(database: TestDatabase, rows: number): Promise<void> {
  await fill(database, { rows })
  await fill(database, { rows, dueAt: later })
  await fill(database, { rows: 300, dueAt: soon })
}

/**
 * What Postgres may believe of a table that holds so many ready rows. The worst of these last until autovacuum comes by again, which is
 * a minute at best; here it is off.
 */
export const beliefs = {
  async 'that was never analysed'(database: TestDatabase, rows: number) {
    await fill(database, { rows })
  },
  async 'that was never analysed, with as many scheduled rows'(database: TestDatabase, rows: number) {
    await fillBoth(database, rows)
  },
  async 'that was analysed, with as many scheduled rows'(database: TestDatabase, rows: number) {
    await fillBoth(database, rows)
    await database.query('analyze outbox')
  },
  async 'that was never analysed, above as many that failed in place'(database: TestDatabase, rows: number) {
    await fillDead(database, rows, { place: 'quarantined' })
    await fillBoth(database, rows)
  },
  async 'that was analysed, above five times as many that failed in place'(
    database: TestDatabase,
    rows: number,
  ) {
    await fillDead(database, 5 * rows, { place: 'quarantined' })
    await fill(database, { rows })
    await database.query('analyze outbox')
  },
  async 'that was vacuumed while it was empty'(database: TestDatabase, rows: number) {
    await fill(database, { rows })
    await database.query('delete from outbox')
    await database.query('vacuum analyze outbox')
    await fill(database, { rows })
  },
  async 'that was vacuumed while it held five fresh rows'(database: TestDatabase, rows: number) {
    await fill(database, { rows })
    await database.query('delete from outbox where seq > 5')
    await database.query('vacuum analyze outbox')
    await fill(database, { rows })
  },
  async 'that was vacuumed while it held five scheduled rows'(database: TestDatabase, rows: number) {
    await fill(database, { rows: 5, dueAt: later })
    await fill(database, { rows })
    await database.query('delete from outbox where due_at is null')
    await database.query('vacuum analyze outbox')
    await fill(database, { rows })
  },
} as const

/** A table of its own for each test, which no autovacuum looks at: statistics would survive a truncate. */
export function useFreshTable(database: TestDatabase, pool: () => pg.Pool): void {
  beforeEach(async ({ onTestFinished }) => {
    await database.query(`drop schema ${database.schema} cascade`)
    await database.query(`create schema ${database.schema}`)
    const outbox = {
      database: pool(),
      schema: database.schema,
      queues: { orders: {} },
      logger: false,
    } as const
    await createOutbox(outbox).migrate()
    await database.query('alter table outbox set (autovacuum_enabled = off)')
    onTestFinished(async () => {
      await database.query('truncate outbox')
    })
  })
}

export interface Sizes {
  readonly rows: number
  /** So many messages, retried so many times each. */
  readonly retried: { readonly messages: number; readonly rounds: number }
}

const room = 500

/** What holds for the claims of a table of any size. `pool` is for everybody else. */
export function describePlans(database: TestDatabase, pool: () => pg.Pool, sizes: Sizes): void {
  const { rows, retried } = sizes

  describe.each(Object.entries(beliefs))('on a table %s', (_, fillBelieving) => {
    test('a claim looks at no more rows than it may take and others hold, in the order of its indexes', async () => {
      await fillBelieving(database, rows)
      const { worker, lastClaim } = explainedWorker(database)

      const held = await worker.take(room)
      const first = lastClaim()
      await worker.take(room, { kind: 'sweep' })
      const beside = lastClaim()

      expect(held).toHaveLength(room)
      expectCheap(first, room)
      expectCheap(beside, room + held.length)
    })
  })

  test('a connection that claimed ten times while the table was empty plans the next claim for the table as it is then', async () => {
    await fill(database, { rows })
    await database.query('delete from outbox where seq > 5')
    await database.query('vacuum analyze outbox')
    const { worker, lastClaim } = explainedWorker(database)
    await passBy(worker, 5)
    for (let count = 0; count < 10; count++) await worker.take(room)
    await fill(database, { rows })

    const held = await worker.take(room)

    expect(held).toHaveLength(room)
    expect(worker.lane.connection).toBe(0)
    expectCheap(lastClaim(), room)
  })

  test.each([
    ['nobody', false],
    ['a snapshot', true],
  ])(
    'a claim from the cursor does not walk over the dead half of a table, which %s still sees',
    async (_, isSeen) => {
      await fillBoth(database, rows)
      await database.query('analyze outbox')
      const reader = await openTransaction(pool())
      await reader.query('set transaction isolation level repeatable read')
      if (isSeen) await reader.query('select count(*) from outbox')
      await database.query('delete from outbox where seq <= $1', [rows / 2])
      const { worker, lastClaim } = explainedWorker(database)
      await passBy(worker, rows / 2)

      await worker.take(room)
      const fromCursor = lastClaim()
      await worker.take(room, { kind: 'sweep' })
      const fromZero = lastClaim()

      expectCheap(fromCursor, room)
      expectCheap(fromZero, 2 * room)
      expect(fromCursor.lanes[1]?.pages).toBeLessThan(room / 5)
      // The reading can see dead rows: whoever begins at zero walks over them, as long as somebody may still want them.
      if (isSeen) expect(fromZero.lanes[1]?.pages).toBeGreaterThan(rows / 80)
    },
  )

  test('under a held snapshot, retries make a claim without the due floor ever dearer, and one with it no more than before', async () => {
    const { messages, rounds } = retried
    await fill(database, { rows: messages, dueAt: `now() - interval '2 hours'` })
    const reader = await openTransaction(pool())
    await reader.query('set transaction isolation level repeatable read')
    await reader.query('select count(*) from outbox')
    const { worker, lastClaim } = explainedWorker(database)
    const pages: { withFloor: number; without: number }[] = []

    for (let round = 1; round <= rounds; round++) {
      const held = await worker.take(messages)
      const withFloor = lastClaim().lanes[0]?.pages ?? 0
      expect(held).toHaveLength(messages)
      await worker.take(messages, { kind: 'sweep' })
      pages.push({ withFloor, without: lastClaim().lanes[0]?.pages ?? 0 })
      // The rounds are twelve seconds apart, as far as the due times tell.
      const delayMs = -7_200_000 + round * 12_000
      const retries = fencesOf(held).map((fence) => ({ ...fence, delayMs, error: 'no' }))
      await worker.run(rescheduleRetried(worker.names, retries, false))
    }

    expect(lastAsked(worker)).toMatchObject({ sweep: true, dueFromMs: null })
    // An index entry and a row for each message, wherever they are by now.
    expect(Math.max(...pages.map(({ withFloor }) => withFloor))).toBeLessThan(3 * messages)
    const last = pages.at(-1)
    expect(last?.without).toBeGreaterThan(10 * (last?.withFloor ?? 0))
  })
}
