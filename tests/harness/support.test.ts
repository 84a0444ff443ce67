import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { prepareSurveys, refuseLeaks, type Surveyed, survey } from '../support/leaks.ts'
import { waitLimitMs } from '../support/patience.ts'
import { collector, eventually, signal } from '../support/signals.ts'

const database = useDatabase()

describe('the database of a test file', () => {
  test('comes first in the search path of every client, under the name of the file', async ({
    onTestFinished,
  }) => {
    const pool = database.pool()
    const client = await database.client()
    const sql = database.postgresJs()
    onTestFinished(async () => {
      await Promise.all([pool.end(), client.end(), sql.end()])
    })
    const question = `select current_schema() as schema, current_setting('application_name') as name`

    const answers = [
      (await pool.query(question)).rows[0],
      (await client.query(question)).rows[0],
      { ...(await sql.unsafe(question))[0] },
    ]

    expect(database.applicationName).toMatch(/^postbox-test support /)
    expect(answers).toEqual(answers.map(() => ({ schema: database.schema, name: database.applicationName })))
    expect(await database.query('select current_schema() as schema')).toEqual([{ schema: database.schema }])
  })

  test('takes options for its pools', async ({ onTestFinished }) => {
    const pool = database.pool({ max: 1 })
    onTestFinished(() => pool.end())

    await Promise.all([pool.query('select 1'), pool.query('select 1')])

    expect(pool.totalCount).toBe(1)
  })
})

describe('the leak check', () => {
  let surveyed: Surveyed

  beforeAll(async () => {
    const guard = new pg.Client({ connectionString: inject('postgresUrl') })
    await guard.connect()
    await prepareSurveys(guard)
    surveyed = { guard, schema: database.schema, applicationName: database.applicationName }
    return () => guard.end()
  })

  async function failureOf(leak: () => Promise<() => Promise<unknown>>, withinMs = 50): Promise<string> {
    const before = await survey(surveyed)
    const cleanUp = await leak()
    try {
      const check = { before, surveyed, test: 'a test', stillOpen: () => [], withinMs }
      return await refuseLeaks(check).then(
        () => 'no failure',
        (error: Error) => error.message,
      )
    } finally {
      await cleanUp()
    }
  }

  test('passes when nothing is left', async () => {
    const failure = await failureOf(async () => {
      const client = await database.client()
      await client.end()
      return async () => {}
    }, waitLimitMs)

    expect(failure).toBe('no failure')
  })

  test('names a connection by its last statement', async () => {
    const failure = await failureOf(async () => {
      const client = await database.client()
      await client.query('select 42')
      return () => client.end()
    })

    expect(failure).toMatch(
      /^"a test" left behind:\n- a connection \(pid \d+, idle\), last statement: select 42/,
    )
  })

  test('names an open transaction', async () => {
    const failure = await failureOf(async () => {
      await database.query('begin')
      return () => database.query('rollback')
    })

    expect(failure).toMatch(/- an open transaction \(pid \d+, idle in transaction\), last statement: begin/)
  })

  test('names a leased row by table, queue and seq', async () => {
    await database.query(`create table letters (seq bigint, queue text, lease_token uuid)`)
    await database.query(`insert into letters values (6, 'mail', null)`)

    const failure = await failureOf(async () => {
      await database.query(`insert into letters values (7, 'mail', gen_random_uuid())`)
      return () => database.query('drop table letters')
    })

    expect(failure).toMatch(
      new RegExp(
        `behind:\\n- a leased row in ${database.schema}\\.letters: queue "mail", seq 7, token [-0-9a-f]{36}$`,
      ),
    )
  })

  test('fails instead of waiting for a table that is locked', async () => {
    await database.query(`create table locked (seq bigint, queue text, lease_token uuid)`)
    const client = await database.client()

    const failure = await failureOf(async () => {
      await client.query('begin')
      await client.query('lock table locked in access exclusive mode')
      return () => client.end()
    })
    await database.query('drop table locked')

    expect(failure).toMatch(/an open transaction .*lock table locked in access exclusive mode/)
    expect(failure).toContain(`a lock on ${database.schema}.locked`)
  })

  test('names a handle', async () => {
    const failure = await failureOf(async () => {
      const server = createServer()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      return () => new Promise((resolve) => server.close(resolve))
    })

    expect(failure).toBe('"a test" left behind:\n- a handle: TCPServerWrap, 0 before the test, 1 after it')
  })
})

describe('a run of tests that leak', () => {
  interface Result {
    readonly title: string
    readonly status: string
    readonly failureMessages: readonly string[]
    readonly meta: { readonly schema?: string }
  }
  let results: Result[]

  beforeAll(async () => {
    results = await runLeakyTests()
  })

  async function runLeakyTests(): Promise<Result[]> {
    const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
    const config = join(import.meta.dirname, '..', 'support', 'leaky', 'vitest.config.ts')
    const args = [vitest, 'run', '--config', config, '--reporter', 'json']
    const env = { ...process.env, DATABASE_URL: inject('postgresUrl') }
    // It ends with exit code 1, because tests fail in it: they have to.
    const { stdout } = await promisify(execFile)(process.execPath, args, { env }).catch((error) => error)
    const report = JSON.parse(stdout.slice(stdout.indexOf('{"')))
    return report.testResults.flatMap((file: { assertionResults: Result[] }) => file.assertionResults)
  }

  test('fails every test that leaks and no other', () => {
    const failed = results.filter((result) => result.status === 'failed').map((result) => result.title)
    const leaking = results.filter((result) => result.title.startsWith('leaks')).map((result) => result.title)

    expect(results.length).toBeGreaterThan(leaking.length)
    expect(failed).toEqual(leaking)
  })

  test.each([
    ['leaks a client', 'a client that was not ended'],
    ['leaks a pool', 'a pool that was not ended'],
    ['leaks a connection opened by its own means', 'a connection (pid'],
    ['leaks a postgres.js client', 'a connection (pid'],
    ['leaks an open transaction of a shared pool', 'an open transaction (pid'],
    ['leaks a client of a shared pool', '1 pool client(s) that were not released'],
    ['leaks a leased row', 'odd_name: queue "letters", seq 17'],
    ['leaks a listening server', 'TCPServerWrap'],
    ['leaks a timer', 'a timer, set at'],
    ['leaks a timer', 'leaks.leak.ts'],
    ['leaks a child process', 'ProcessWrap'],
  ])('says of the test that %s: %s', (title, text) => {
    const message = results.find((result) => result.title === title)?.failureMessages.join('\n')

    expect(message).toContain(`"${title}" left behind:`)
    expect(message).toContain(text)
  })

  test('gives every file a schema of its own and drops it', async () => {
    const schemas = results.flatMap((result) => result.meta.schema ?? [])

    const left = await database.query('select nspname from pg_namespace where nspname = any($1)', [schemas])

    expect(new Set([...schemas, database.schema]).size).toBe(3)
    expect(left).toEqual([])
  })
})

describe('waiting', () => {
  test('a signal resolves for those who wait before it and after it, with its first value', async () => {
    const started = signal<number>('the start')
    const early = started.wait()

    started.send(1)
    started.send(2)

    expect([await early, await started.wait(), started.hasHappened]).toEqual([1, 1, true])
  })

  test('a signal that does not come fails with the name of what was awaited', async () => {
    const wait = signal('the handler to start').wait({ withinMs: 1 })

    await expect(wait).rejects.toThrow('waited 1 ms for the handler to start')
  })

  test('a collector gives the first values in order, and the first that passes', async () => {
    const acked = collector<number>('acked messages')
    const three = acked.take(3)
    const even = acked.find((value) => value % 2 === 0)

    for (const value of [3, 1, 4, 1]) acked.add(value)

    expect([await three, await even, acked.all]).toEqual([[3, 1, 4], 4, [3, 1, 4, 1]])
  })

  test('a collector that comes up short says how many there were', async () => {
    const acked = collector<number>('acked messages')
    acked.add(1)

    await expect(acked.take(2, { withinMs: 1 })).rejects.toThrow('waited 1 ms for 2 acked messages, got 1')
  })

  test('eventually asks until the answer is there, through errors', async () => {
    let asked = 0
    const answer = await eventually(
      () => {
        asked += 1
        if (asked === 1) throw new Error('not yet')
        return asked === 3 && 'here'
      },
      { what: 'the third answer' },
    )

    expect(answer).toBe('here')
  })

  test('eventually gives up with what it waited for and the last error as its cause', async () => {
    const failing = eventually(() => Promise.reject(new Error('still broken')), {
      what: 'a repair',
      withinMs: 1,
    })

    await expect(failing).rejects.toMatchObject({
      message: 'waited 1 ms for a repair',
      cause: expect.objectContaining({ message: 'still broken' }),
    })
  })
})
