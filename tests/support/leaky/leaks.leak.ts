// Every title that begins with "leaks" must fail, every other one must pass: harness/support.test.ts checks it.
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { useDatabase } from '../database.ts'

// What is leaked stays however long one waits, so the check need not.
const database = useDatabase({ leaksWithinMs: 50 })
let shared: pg.Pool

beforeAll(async () => {
  shared = database.pool()
  await database.query(`create table odd_name (seq bigint, queue text, lease_token uuid)`)
})

test('leaks a client', async () => {
  const client = await database.client()
  await client.query(`select 'left by a client'`)
})

test('answers only for itself after a test that leaked', async ({ task }) => {
  task.meta.schema = database.schema
  await database.query('select 1')
})

test('leaks a pool', async () => {
  await database.pool().query('select 1')
})

test('leaks a connection opened by its own means', async () => {
  await new pg.Client({ connectionString: database.url }).connect()
})

test('leaks a postgres.js client', async () => {
  await database.postgresJs()`select 1`
})

test('leaks an open transaction of a shared pool', async () => {
  const client = await shared.connect()
  await client.query('begin')
  await client.query('lock table odd_name in share mode')
})

test('leaks a client of a shared pool', async () => {
  await shared.connect()
})

test('leaks a leased row', async () => {
  const row = [17, 'letters', '00000000-0000-4000-8000-000000000001']
  await database.query('insert into odd_name (seq, queue, lease_token) values ($1, $2, $3)', row)
})

test('leaks a listening server', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})

test('leaks a timer', () => {
  setInterval(() => {}, 60_000)
})

test('leaks a child process', () => {
  const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 5_000)'], { stdio: 'ignore' })
  expect(child.pid).toBeDefined()
})
