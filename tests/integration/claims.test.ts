// Which rows claims and sweeps see, against real transactions: rows get their seq before they commit, so a row can appear below the cursor.
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parseSnapshot } from '../../packages/postbox/src/core/horizon.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { extendLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { useDatabase } from '../support/database.ts'
import { longTestLimitMs, longWaitLimitMs } from '../support/patience.ts'
import {
  fencesOf,
  fill,
  lastAsked,
  type OpenTransaction,
  openTransaction,
  openWorker,
  passBy,
  randomLife,
  seqsOf,
  type Worker,
} from '../support/sessions.ts'
import { eventually } from '../support/signals.ts'

const database = useDatabase()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool({ max: 20 })
  const queues = { orders: {} }
  await createOutbox({ database: pool, schema: database.schema, queues, logger: false }).migrate()
})

beforeEach(({ onTestFinished }) => {
  onTestFinished(async () => {
    await database.query('truncate outbox restart identity')
  })
})

const work = (): Worker => openWorker(pool, database.schema)

/**
 * Four transactions: one that gets its xid early and its seq late, commits and is seen; one that holds a lower seq and lives on; and two
 * claims. The first claim's snapshot ends before the xid of the one that lives (xmax is the latest completed transaction + 1): a cursor
 * that trusted xmax would go past its row with the second claim.
 */
async function overtaken(worker: Worker): Promise<{ late: OpenTransaction; low: number; high: number }> {
  const attempt = async () => {
    const early = await openTransaction(pool)
    await early.identify()
    const late = await openTransaction(pool)
    const lateXid = await late.identify()
    const low = await late.insert()
    const high = await early.insert()
    await early.commit()
    const first = await worker.take(10)
    expect(seqsOf(first)).toEqual([high])
    if (parseSnapshot(lastSnapshot(worker)).xmax <= lateXid) return { late, low, high }
    // Somebody else on this server finished a transaction in between: the snapshot could tell.
    await late.rollback()
    await worker.run(deleteAcked(worker.names, fencesOf(first)))
    return null
  }
  const script = await eventually(attempt, { what: 'a moment in which nobody else commits' })
  await worker.take(10)
  return script
}

function lastSnapshot({ exchanges }: Worker): string {
  const claim = exchanges.findLast(({ statement }) => statement.name === 'claim_messages')
  const queue = claim?.rows.find((row) => (row as { kind: string }).kind === 'queue')
  return (queue as { snapshot: string }).snapshot
}

describe('a row that commits below one that was already claimed', () => {
  test('is found by the next claim from the cursor, though no snapshot told of its transaction', async () => {
    const worker = work()
    const { late, low, high } = await overtaken(worker)

    await worker.take(10)
    await late.commit()
    const found = await worker.take(10)

    expect(seqsOf(found)).toEqual([low])
    expect(low).toBeLessThan(high)
    expect(lastAsked(worker)).toMatchObject({ sweep: false })
  })

  test('is waited for until its transaction has been seen for 250 ms', async () => {
    const worker = work()
    const { late, low } = await overtaken(worker)

    worker.clock.advance(249)
    await worker.take(10)
    await late.commit()

    expect(seqsOf(await worker.take(10))).toEqual([low])
  })

  test('is left to the sweep when its transaction has been seen for 250 ms', async () => {
    const worker = work()
    const { late, low } = await overtaken(worker)

    worker.clock.advance(250)
    await worker.take(10)
    await late.commit()

    expect(seqsOf(await worker.take(10))).toEqual([])
    expect(Number(lastAsked(worker).after)).toBeGreaterThan(low)
    expect(seqsOf(await worker.take(10, { kind: 'sweep' }))).toEqual([low])
  })
})

test.each([1, 2])(
  'no row is left to the sweep while no transaction outlives the patience (seed %i)',
  async (seed) => {
    const worker = work()

    const { committed, delivered } = await randomLife(worker, pool, { seed, steps: 600, sweeps: false })

    expect(delivered).toEqual(committed)
    await passBy(worker, Math.max(...committed))
  },
  longTestLimitMs,
)

test.each([1, 2, 3])(
  'no row lives or appears below the floor of a sweep (seed %i)',
  async (seed) => {
    const worker = work()

    const { committed, delivered, hidden } = await randomLife(worker, pool, {
      seed,
      steps: 600,
      sweeps: true,
    })

    expect(hidden).toEqual([])
    expect(delivered).toEqual(committed)
    await floorPasses(worker, Math.min(...committed))
  },
  longTestLimitMs,
)

/** The strict horizon waits for every transaction of the server, those of other tests included. */
async function floorPasses(worker: Worker, seq: number): Promise<void> {
  const isBehind = async (): Promise<boolean> => {
    await worker.take(1, { kind: 'sweep' })
    return Number(lastAsked(worker).after) > seq
  }
  await eventually(isBehind, { what: `sweeps to begin behind ${seq}`, withinMs: longWaitLimitMs })
}

describe('below the cursor, where claims no longer look, a sweep finds', () => {
  /** Ten rows that a worker holds, and another whose cursor is behind them. */
  const overlooked = async () => {
    const holder = work()
    const looker = work()
    await fill(pool, { rows: 10 })
    const held = await holder.take(10)
    await fill(pool, { rows: 1 })
    await passBy(looker, Math.max(...seqsOf(held)))
    return { holder, looker, held }
  }

  test('rows whose lease has ended', async () => {
    const { looker, held } = await overlooked()

    await pool.query(`update outbox set leased_until = now() - interval '1 ms'`)

    expect(seqsOf(await looker.take(10))).toEqual([])
    const found = await looker.take(10, { kind: 'sweep' })
    expect(seqsOf(found)).toEqual(seqsOf(held))
    expect(found.map(({ lease }) => lease.deliveries)).toEqual(held.map(() => 2))
  })

  test('rows that were released, as if they had not been claimed', async () => {
    const { holder, looker, held } = await overlooked()

    await holder.run(releaseLeases(holder.names, fencesOf(held), false))

    expect(seqsOf(await looker.take(10))).toEqual([])
    const found = await looker.take(10, { kind: 'sweep' })
    expect(seqsOf(found)).toEqual(seqsOf(held))
    expect(found.map(({ lease }) => lease.deliveries)).toEqual(held.map(() => 1))
  })

  test('nothing of what others hold', async () => {
    const { looker } = await overlooked()

    expect(seqsOf(await looker.take(10, { kind: 'sweep' }))).toEqual([])
  })

  test('rows of the due lane whose lease has ended, however long ago they were due', async () => {
    const holder = work()
    const looker = work()
    await fill(pool, { rows: 3, dueAt: `now() - interval '1 hour'` })
    const held = await holder.take(3)
    await fill(pool, { rows: 1, dueAt: 'now()' })
    await looker.take(10)

    await pool.query(`update outbox set leased_until = now() - interval '1 ms' where seq <= 3`)

    expect(seqsOf(await looker.take(10))).toEqual([])
    expect(seqsOf(await looker.take(10, { kind: 'sweep' }))).toEqual(seqsOf(held))
  })
})

describe('claims begin at zero again', () => {
  test('when the sequence went back', async () => {
    const worker = work()
    await fill(pool, { rows: 20 })
    await passBy(worker, 20)
    await pool.query('truncate outbox restart identity')
    await fill(pool, { rows: 3 })

    await worker.take(10)
    const found = await worker.take(10)

    expect(seqsOf(found)).toEqual([1, 2, 3])
    expect(lastAsked(worker)).toMatchObject({ after: '0', sweep: false })
  })

  test('on a new connection, which may lead to another server', async () => {
    const worker = work()
    await fill(pool, { rows: 20 })
    const backend = { name: 'backend', text: 'select pg_backend_pid() as pid', values: [] }
    const [row] = await worker.run<{ pid: number }>(backend)
    await passBy(worker, 20)

    await pool.query('select pg_terminate_backend($1)', [row?.pid])
    await eventually(() => worker.lane.connection > 0, { what: 'the lane to notice' })
    await worker.take(10)

    expect(lastAsked(worker)).toMatchObject({ after: '0', sweep: false })
  })
})

describe('a subscriber with a lease of five seconds', () => {
  const short = { leaseMs: 5_000 }
  /** As if so much time had passed since every lease was taken. */
  const age = (seconds: number) =>
    pool.query(`update outbox set leased_until = leased_until - make_interval(secs => $1)`, [seconds])

  test('takes nothing that another holds for sixty, before those are over', async () => {
    const [long, quick] = [work(), work()]
    await fill(pool, { rows: 3 })
    await fill(pool, { rows: 3, dueAt: 'now()' })
    await long.take(10)

    await age(30)
    const early = [await quick.take(10, short), await quick.take(10, { ...short, kind: 'sweep' })]
    await age(30)
    const found = await quick.take(10, { ...short, kind: 'sweep' })

    expect(early).toEqual([[], []])
    expect(found).toHaveLength(6)
  })

  test('loses what it holds after five, to one that asks for sixty', async () => {
    const [long, quick] = [work(), work()]
    await fill(pool, { rows: 3 })
    await quick.take(10, short)

    const early = await long.take(10, { kind: 'sweep' })
    await age(5)
    const found = await long.take(10, { kind: 'sweep' })

    expect(early).toEqual([])
    expect(found).toHaveLength(3)
  })

  test('renews its own for five, beside others of sixty in the same statement', async () => {
    const worker = work()
    await fill(pool, { rows: 2 })
    const held = await worker.take(2)
    const [first, second] = fencesOf(held)

    const extensions = [
      { ...first!, leaseMs: 5_000 },
      { ...second!, leaseMs: 60_000 },
    ]
    await worker.run(extendLeases(worker.names, extensions))

    const { rows } = await pool.query(
      `select leased_until > now() + interval '10 s' as long from outbox order by seq`,
    )
    expect(rows).toEqual([{ long: false }, { long: true }])
  })
})

test('a lease says when it was claimed, by the clock that says when it ends', async () => {
  const worker = work()
  await fill(pool, { rows: 1 })

  const [held] = await worker.take(1, { leaseMs: 60_000 })

  const { rows } = await pool.query(
    'select floor(extract(epoch from leased_until) * 1000)::float8 as ends from outbox',
  )
  expect(held!.lease.claimedAt.getTime() + 60_000).toBe(rows[0].ends)
})
