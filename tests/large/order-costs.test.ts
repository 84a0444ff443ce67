// What ordered queues cost at the sizes that were promised: a million keys, a hot key of 100,000 rows, 100,000 blocked ones in front of 50,000.
import type pg from 'pg'
import { beforeAll } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { describeOrderCosts } from '../support/order-plan.ts'

const database = useDatabase()
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool()
})

describeOrderCosts(database, () => pool, { few: 2_000, many: 1_000_000, dead: 100_000, blocked: 100_000 })
