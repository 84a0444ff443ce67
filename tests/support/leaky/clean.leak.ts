// Tests that clean up after themselves and must pass: harness/support.test.ts checks it.
import type pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../database.ts'

declare module 'vitest' {
  interface TaskMeta {
    schema?: string
  }
}

const database = useDatabase()
let shared: pg.Pool

beforeAll(() => {
  shared = database.pool()
})

test('has a schema of its own', async ({ task }) => {
  task.meta.schema = database.schema

  const [row] = await database.query<{ schema: string }>('select current_schema() as schema')

  expect(row?.schema).toBe(database.schema)
})

test('ends its pool and its clients', async ({ onTestFinished }) => {
  const pool = database.pool()
  onTestFinished(() => pool.end())
  const client = await database.client()
  const sql = database.postgresJs()

  await Promise.all([pool.query('select 1'), client.query('select 1'), sql`select 1`])

  await client.end()
  await sql.end()
})

test('uses a shared pool that connects only now', async () => {
  await Promise.all([1, 2, 3].map((value) => shared.query('select $1::int', [value])))

  expect(shared.totalCount).toBeGreaterThan(0)
})
