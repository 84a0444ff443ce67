import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, describe, test } from 'vitest'
import { cutAt, cutsByLease, startWorker } from '../chaos/cut.ts'
import { type KillScene, killAt, killInTransaction, startSurvivor } from '../chaos/kill.ts'
import { createDeliveredTable } from '../chaos/ledger.ts'
import { type Child, expectEnd, usePrograms } from '../chaos/processes.ts'
import { failpoints, transactionPoints } from '../chaos/protocol.ts'
import { createRandom } from '../chaos/random.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
const programs = usePrograms()
let pool: pg.Pool

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
  await createDeliveredTable(database)
})

const kills = 20
const rounds = 5
// Points that are reached once in a life, or only where there is something to renew.
const rarelyReached = /listen|renewal/

describe('a process that is killed', () => {
  let scene: KillScene

  beforeAll(async () => {
    const survivor = startSurvivor(database, programs)
    await survivor.until('ready')
    scene = { database, pool, programs, survivor }
  })

  test.each(failpoints)(
    `${kills} times at %s loses no message, and only what it had in hand is delivered twice`,
    async (point) => {
      for (let seed = 0; seed < kills; seed++) {
        const random = createRandom(seed)
        const nth = rarelyReached.test(point) ? 1 : 1 + random.below(12)
        await killAt(scene, { point, nth, random })
      }
    },
  )

  test('leaves a survivor that ends by itself', async () => {
    await expectEnd(scene.survivor)
  })
})

describe('a process that is killed within a transaction of a handler', () => {
  let scene: KillScene

  beforeAll(async () => {
    const survivor = startSurvivor(database, programs, true)
    await survivor.until('ready')
    scene = { database, pool, programs, survivor }
  })

  test.each(transactionPoints)(
    `${kills} times at %s leaves every message with exactly one effect`,
    async (point) => {
      for (let seed = 0; seed < kills; seed++) {
        const random = createRandom(seed)
        await killInTransaction(scene, { point, nth: 1 + random.below(12), random })
      }
    },
  )

  test('leaves a survivor that ends by itself', async () => {
    await expectEnd(scene.survivor)
  })
})

describe.each(cutsByLease)('a worker with leases of $leaseMs ms', ({ leaseMs, cuts }) => {
  let worker: Child

  beforeAll(async () => {
    worker = startWorker(database, programs, leaseMs)
    await worker.until('ready')
  })

  test.each(cuts)(
    `that is ${rounds} times at %s when its connection to %s is cut goes on and loses nothing`,
    async (point, role) => {
      for (let nth = 1; nth <= rounds; nth++) {
        await cutAt({ database, pool, worker }, { point, role, nth: rarelyReached.test(point) ? 1 : nth })
      }
    },
  )

  test('that has lived through all this ends by itself', async () => {
    await expectEnd(worker)
  })
})
