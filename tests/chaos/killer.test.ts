import { createOutbox } from 'postbox'
import { beforeAll, describe, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { longTestLimitMs } from '../support/patience.ts'
import { eventually } from '../support/signals.ts'
import { aftermath, createRunsTable, publishKillers, restartUntilQuiet } from './killers.ts'
import { createDeliveredTable } from './ledger.ts'
import { usePrograms } from './processes.ts'
import type { WorkerOrder } from './protocol.ts'

const database = useDatabase()
const programs = usePrograms()

beforeAll(async () => {
  await createRunsTable(database)
  await createDeliveredTable(database)
})

test('a message that kills five processes is dead, and the sixth does not run it', async () => {
  const { url, schema } = database
  const pool = database.pool({ max: 1 })
  const { id } = await createOutbox({ database: pool, schema }).publishNow('orders', 'killer')
  await pool.end()
  const trap = { point: 'before_handler', nth: 1, action: 'kill', whileRenewing: false } as const
  for (let death = 1; death <= 5; death++) {
    await using victim = programs.worker({ url, schema, trap })
    expect(await victim.ended).toMatchObject({ signal: 'SIGKILL' })
    const [row] = await database.query('select deliveries, attempts, failed_at from outbox')
    expect(row).toEqual({ deliveries: death, attempts: 0, failed_at: null })
    await database.query(`update outbox set leased_until = now() - interval '1 second'`)
  }

  await using sixth = programs.worker({ url, schema, trap })
  const dead = await eventually(
    async () => (await database.query('select id, failure_reason, attempts, deliveries from outbox_dead'))[0],
    { what: 'the dead letter' },
  )

  expect(dead).toEqual({ id, failure_reason: 'max_deliveries', attempts: 0, deliveries: 5 })
  expect(sixth.hasEnded).toBe(false)
  expect(await database.query('select from outbox')).toEqual([])
  expect(await database.query('select from delivered')).toEqual([])
})

describe('a message that kills its process, among others', () => {
  const scene = { database, programs }
  const options = { concurrency: 10, prefetch: 20, pollMs: { min: 20, max: 100 } }

  interface Case {
    readonly title: string
    readonly killers: readonly number[]
    readonly order: Partial<WorkerOrder>
    /** Each is dead after so many deliveries. */
    readonly deliveries: number
    /** The first death is counted for all that were in hand. */
    readonly deaths: number
  }

  test.each<Case>([
    { title: 'one', killers: [13], order: { options }, deliveries: 5, deaths: 5 },
    { title: 'two', killers: [4, 22], order: { options }, deliveries: 5, deaths: 9 },
    {
      title: 'one, of a batch',
      killers: [13],
      order: { options: { ...options, concurrency: 3 }, batchSize: 4 },
      deliveries: 5,
      deaths: 5,
    },
    {
      title: 'one that may be delivered twice',
      killers: [13],
      order: { options: { ...options, maxDeliveries: 2 } },
      deliveries: 2,
      deaths: 2,
    },
  ])(
    '$title, is dead after its deaths, and every other is delivered, interrupted once at most',
    { timeout: longTestLimitMs },
    async ({ killers, order, deliveries, deaths }) => {
      const ids = await publishKillers(scene, { count: 31, killers })
      const died = await restartUntilQuiet(scene, order, deaths)

      const { neighbours } = await aftermath(scene, died, ids)
      const dead = await database.query<{ id: string }>(
        'select id::text, failure_reason as reason, deliveries, attempts from outbox_dead',
      )
      expect(dead.toSorted((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id))).toEqual(
        ids.map((id) => ({ id, reason: 'max_deliveries', deliveries, attempts: 0 })),
      )
      expect(died).toBe(deaths)
      // Nothing is left, so each that has ended was acknowledged.
      expect(neighbours).toHaveLength(31 - killers.length)
      expect(neighbours.filter(({ begun, interrupted }) => begun === interrupted || interrupted > 1)).toEqual(
        [],
      )
      // It took some with it, or nothing was shown.
      expect(neighbours.some(({ interrupted }) => interrupted === 1)).toBe(true)
    },
  )
})
