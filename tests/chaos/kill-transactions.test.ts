import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { killInTransaction, startSurvivor } from './kill.ts'
import { createDeliveredTable } from './ledger.ts'
import { type Child, usePrograms } from './processes.ts'
import { transactionPoints } from './protocol.ts'
import { createRandom } from './random.ts'

const database = useDatabase()
const programs = usePrograms()
let pool: pg.Pool
let survivor: Child

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
  await createDeliveredTable(database)
  survivor = startSurvivor(database, programs, true)
  await survivor.until('ready')
})

test.each(transactionPoints)(
  'a process that is killed at %s leaves every message with exactly one effect',
  async (point) => {
    for (const nth of [1, 5])
      await killInTransaction(
        { database, pool, programs, survivor },
        { point, nth, random: createRandom(nth) },
      )
    expect(survivor.hasEnded).toBe(false)
  },
)
