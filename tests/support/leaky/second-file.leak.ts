import { expect, test } from 'vitest'
import { useDatabase } from '../database.ts'

const database = useDatabase()

test('has a schema of its own', async ({ task }) => {
  task.meta.schema = database.schema

  const [row] = await database.query<{ schema: string }>('select current_schema() as schema')

  expect(row?.schema).toBe(database.schema)
})
