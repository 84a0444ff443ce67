// The races of ../integration/races.test.ts and claims.test.ts, longer, and without a script that makes them meet.
import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sqlStateOf } from '../../packages/postbox/src/core/sql-state.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { useDatabase } from '../support/database.ts'
import {
  churn,
  fencesOf,
  fill,
  openWorker,
  randomLife,
  type Worker,
  withSettings,
} from '../support/sessions.ts'

const database = useDatabase()
let pool: pg.Pool

beforeAll(async () => {
  // A deadlock is looked for after a moment and not after a second: the last test makes many.
  const connectionString = withSettings(database.url, { deadlock_timeout: '20ms' })
  pool = database.pool({ connectionString, max: 20 })
  const queues = { orders: {} }
  await createOutbox({ database: pool, schema: database.schema, queues, logger: false }).migrate()
})

beforeEach(({ onTestFinished }) => {
  onTestFinished(async () => {
    await database.query('truncate outbox restart identity')
  })
})

const work = (): Worker => openWorker(pool, database.schema)

test('no row is ever in two hands, in forty thousand claims of six claimers', async () => {
  const { doubles, overs } = await churn([work(), work(), work(), work(), work(), work()], pool, 40_000)

  expect({ doubles, overs }).toEqual({ doubles: 0, overs: 0 })
})

test.each([11, 12, 13, 14])(
  'no row is left to the sweep while no transaction outlives the patience (seed %i)',
  async (seed) => {
    const { committed, delivered } = await randomLife(work(), pool, { seed, steps: 20_000, sweeps: false })

    expect(delivered).toEqual(committed)
  },
)

test.each([11, 12, 13, 14])('no row lives or appears below the floor of a sweep (seed %i)', async (seed) => {
  const { committed, delivered, hidden } = await randomLife(work(), pool, {
    seed,
    steps: 20_000,
    sweeps: true,
  })

  expect(hidden).toEqual([])
  expect(delivered).toEqual(committed)
})

describe('two connections that write the same five hundred rows at once, two hundred times', () => {
  type Retries = Parameters<typeof rescheduleRetried>[1]

  /** The SQLSTATEs that they were told, when the second names the rows in its own order. */
  const failures = async (inOrder: (retries: Retries) => Retries): Promise<readonly unknown[]> => {
    const [one, two] = [work(), work()]
    const told: unknown[] = []
    // Enough that rows are found one after the other, as they are named, to the last round.
    await fill(pool, { rows: 150_000 })
    for (let round = 0; round < 200; round++) {
      const held = await one.take(500)
      const retries = fencesOf(held).map((fence) => ({ ...fence, delayMs: 3_600_000, error: 'no' }))
      const results = await Promise.allSettled([
        one.run(rescheduleRetried(one.names, retries, false)),
        two.run(rescheduleRetried(two.names, inOrder(retries), false)),
      ])
      for (const result of results) if (result.status === 'rejected') told.push(sqlStateOf(result.reason))
    }
    return told
  }

  test('never deadlock when both name them in the order of seq', async () => {
    expect(await failures((retries) => retries)).toEqual([])
  })

  test('do deadlock when one names them backwards', async () => {
    const told = await failures((retries) => retries.toReversed())

    expect(new Set(told)).toEqual(new Set(['40P01']))
  })
})
