import { createOutbox } from 'postbox'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import {
  aftermath,
  createRunsTable,
  type KillerScene,
  publishKillers,
  restartUntilQuiet,
  startMortal,
} from '../chaos/killers.ts'
import { usePrograms } from '../chaos/processes.ts'
import { createRandom } from '../chaos/random.ts'
import { useDatabase } from '../support/database.ts'
import { collector, eventually } from '../support/signals.ts'

const database = useDatabase()
const scene: KillerScene = { database, programs: usePrograms() }
const options = { concurrency: 10, prefetch: 20, pollMs: { min: 20, max: 100 } }

beforeAll(() => createRunsTable(database))

async function expectOnlyKillersDead(killers: readonly string[], count: number): Promise<void> {
  const dead = await database.query('select id::text, failure_reason as reason, deliveries from outbox_dead')
  expect(dead).toHaveLength(killers.length)
  for (const id of killers) expect(dead).toContainEqual({ id, reason: 'max_deliveries', deliveries: 5 })
  const { neighbours } = await aftermath(scene, 0, killers)
  expect(neighbours).toHaveLength(count - killers.length)
  expect(neighbours.filter(({ begun, interrupted }) => begun === interrupted || interrupted > 1)).toEqual([])
}

test.each([undefined, 7])(
  'twenty times, one to three killers among 60 are dead and nobody else is (batches of %s)',
  async (batchSize) => {
    for (let seed = 0; seed < 20; seed++) {
      const random = createRandom(seed)
      const killers = [...new Set(Array.from({ length: 1 + random.below(3) }, () => random.below(60)))]
      const ids = await publishKillers(scene, { count: 60, killers })
      const order = { options, ...(batchSize === undefined ? {} : { batchSize }) }
      await restartUntilQuiet(scene, order, 5 * killers.length)
      await expectOnlyKillersDead(ids, 60)
    }
  },
)

test('two processes that are started again whenever they die, and wait for each other’s leases: the same', async () => {
  const ids = await publishKillers(scene, { count: 300, killers: [40, 41, 200] })
  const order = { options: { ...options, leaseMs: 2_000 } }
  const isQuiet = async (): Promise<boolean> => (await database.query('select from outbox')).length === 0
  const keepAlive = async (): Promise<void> => {
    while (!(await isQuiet())) {
      await using worker = startMortal(scene, order)
      await eventually(async () => worker.hasEnded || (await isQuiet()), {
        what: 'the end of a worker, or of all messages',
        withinMs: 300_000,
      })
    }
  }
  await Promise.all([keepAlive(), keepAlive()])

  await expectOnlyKillersDead(ids, 300)
})

test('a thousand messages that a dead process had in hand are delivered one by one, in seconds', async () => {
  await publishKillers(scene, { count: 1_000, killers: [] })
  await database.query('update outbox set deliveries = 1')
  const acked = collector<string>('acks')
  const pool = database.pool()
  onTestFinished(() => pool.end())
  const outbox = createOutbox({
    database: pool,
    schema: database.schema,
    logger: false,
    onEvent: (event) => event.kind === 'acked' && acked.add(event.id),
  })
  outbox.subscribe('orders', () => {}, { concurrency: 10 })
  const begun = performance.now()
  await using _running = await outbox.start()
  await acked.take(1_000, { withinMs: 120_000 })

  console.log(`1,000 suspects: ${Math.round(performance.now() - begun)} ms`)
  expect(await database.query('select from outbox')).toEqual([])
})
