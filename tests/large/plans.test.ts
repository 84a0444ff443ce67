// The plans of ../integration/plans.test.ts on tables of a million rows.
import type pg from 'pg'
import { beforeAll } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { describePlans, useFreshTable } from '../support/plan.ts'

const database = useDatabase()
let pool: pg.Pool

beforeAll(() => {
  pool = database.pool()
})

useFreshTable(database, () => pool)

describePlans(database, () => pool, { rows: 1_000_000, retried: { messages: 1_000, rounds: 200 } })
