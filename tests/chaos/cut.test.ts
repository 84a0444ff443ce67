import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, describe, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { cutAt, cutsByLease, startWorker } from './cut.ts'
import { createDeliveredTable } from './ledger.ts'
import { type Child, expectEnd, usePrograms } from './processes.ts'

const database = useDatabase()
const programs = usePrograms()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
  await createDeliveredTable(database)
})

describe.each(cutsByLease)('a worker with leases of $leaseMs ms', ({ leaseMs, cuts }) => {
  let worker: Child

  beforeAll(async () => {
    worker = startWorker(database, programs, leaseMs)
    await worker.until('ready')
  })

  test.each(cuts)(
    'that is at %s when its connection to %s is cut goes on with two new ones and loses nothing',
    async (point, role) => {
      await cutAt({ database, pool, worker }, { point, role, nth: 1 })
    },
  )

  test('that has lived through all this ends by itself', async () => {
    await expectEnd(worker)
  })
})
