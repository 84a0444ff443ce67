// What ordered queues cost, as counts. Larger tables are in ../large/order-costs.test.ts.
import type pg from 'pg'
import { beforeAll } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { describeOrderCosts } from '../support/order-plan.ts'

const database = useDatabase()
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool()
})

describeOrderCosts(database, () => pool, { few: 2_000, many: 10_000, dead: 10_000, blocked: 5_000 })
