import type pg from 'pg'
import { createOutbox } from 'postbox'
import { beforeAll, describe, expect, test } from 'vitest'
import type { FailpointName } from '../../packages/postbox/src/runtime/failpoint.ts'
import { useDatabase } from '../support/database.ts'
import { killAt, startSurvivor } from './kill.ts'
import { createDeliveredTable } from './ledger.ts'
import { type Child, usePrograms } from './processes.ts'
import { createRandom } from './random.ts'

const database = useDatabase()
const programs = usePrograms()
let pool: pg.Pool
let survivor: Child

beforeAll(async () => {
  pool = database.pool()
  await createOutbox({ database: pool, schema: database.schema }).migrate()
  await createDeliveredTable(database)
  survivor = startSurvivor(database, programs)
  await survivor.until('ready')
})

const kill = (point: FailpointName, nth: number) =>
  killAt({ database, pool, programs, survivor }, { point, nth, random: createRandom(nth) })

describe('a process that is killed', () => {
  test.each([
    ['before_listen', 1],
    ['after_listen', 1],
    ['before_sleep', 3],
    ['before_claim', 3],
    ['claim_sent', 3],
    ['after_claim', 3],
    ['flush_sent', 3],
    ['after_flush', 3],
  ] as const)(
    'at %s loses no message, and only what it had in hand is delivered twice',
    async (point, nth) => {
      await kill(point, nth)
    },
  )

  test.each([
    ['before_handler', 9],
    ['after_handler', 9],
    ['before_flush', 3],
    ['before_renewal', 1],
    ['renewal_sent', 1],
    ['after_renewal', 1],
  ] as const)('at %s has messages in hand, and another process delivers them', async (point, nth) => {
    expect(await kill(point, nth)).not.toEqual([])
  })
})
