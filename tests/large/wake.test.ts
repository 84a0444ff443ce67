import { createOutbox } from 'postbox'
import { beforeAll, expect, test } from 'vitest'
import { createDeliveredTable } from '../chaos/ledger.ts'
import { usePrograms } from '../chaos/processes.ts'
import { publishToSleepers } from '../chaos/wake-rounds.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
const programs = usePrograms()

beforeAll(async () => {
  await createOutbox({ database: database.pool(), schema: database.schema }).migrate()
  await createDeliveredTable(database)
})

test('in 10,000 rounds of random transactions no sleeper misses a message, though some publishers say nothing', async () => {
  const counts = await publishToSleepers({ database, programs }, { rounds: 10_000, seed: 7 })

  console.log(counts)
  expect(counts.delivered).toBeGreaterThan(10_000)
  expect(counts.announced).toBeGreaterThan(0)
  expect(counts.announceable - counts.announced).toBeGreaterThan(1_000)
})
