import { randomBytes } from 'node:crypto'
import { basename } from 'node:path'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, beforeEach, expect, inject } from 'vitest'
import {
  endStuckSessions,
  prepareSurveys,
  refuseLeaks,
  type Snapshot,
  sharedName,
  survey,
  surveyAgain,
} from './leaks.ts'
import { waitLimitMs } from './patience.ts'

export interface TestDatabase {
  /** Belongs to this file alone; created before its first test, dropped after its last. */
  readonly schema: string
  /** Opens connections that find the schema first and carry the application name, with any client. */
  readonly url: string
  readonly applicationName: string
  pool(options?: pg.PoolConfig): pg.Pool
  client(): Promise<pg.Client>
  postgresJs(options?: postgres.Options<Record<string, never>>): postgres.Sql
  /** Runs on a connection of the support's own; leave no transaction open on it. */
  query<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>
}

export interface DatabaseOptions {
  /** How long a test's connections may take to close after it. @default waitLimitMs */
  readonly leaksWithinMs?: number
}

interface HandedOut {
  readonly what: string
  readonly isShared: boolean
  isOpen(): boolean
  close(): Promise<void>
}

/**
 * A schema for this test file, and the clients to use it. Call it at the top of the file or of a describe.
 *
 * What a test obtains it has to end before it is over, its afterEach and onTestFinished included; a test that leaves
 * a connection, an open transaction, a leased row or a handle behind fails. What is obtained in a beforeAll is shared
 * by the tests and ended by the support. Not for `test.concurrent`: the leak could be anybody's.
 */
export function useDatabase({ leaksWithinMs = waitLimitMs }: DatabaseOptions = {}): TestDatabase {
  const id = randomBytes(4).toString('hex')
  const file = basename(expect.getState().testPath ?? 'unknown', '.test.ts')
  // PostgreSQL cuts names after 63 bytes. The id keeps runs apart that share a server.
  const schema = `test_${file.replaceAll(/\W/g, '_').slice(0, 40)}_${id}`
  const applicationName = `postbox-test ${file.slice(0, 36)} ${id}`
  // Two connections: a query() that waits for a lock must not keep the guard from finding who holds it. The first
  // counts as shared by the tests, so a transaction left open on it is found as well.
  const address = inject('postgresUrl')
  const admin = new pg.Client({ connectionString: address, application_name: sharedName(applicationName) })
  const guard = new pg.Client({ connectionString: address, application_name: `postbox-guard ${id}` })
  const surveyed = { guard, schema, applicationName }
  const handedOut: HandedOut[] = []
  const pools: pg.Pool[] = []
  let isInTest = false
  /** What the last test was seen to leave, and whose it was. */
  let last: { readonly left: Snapshot; readonly suite: unknown } | undefined

  beforeAll(async () => {
    admin.on('error', () => {})
    await Promise.all([admin.connect(), guard.connect()])
    await prepareSurveys(guard)
    await admin.query(`create schema ${schema}`)
    await admin.query(`set search_path = ${schema}, public`)
  })

  beforeEach(async ({ task, onTestFinished }) => {
    const before =
      last !== undefined && last.suite === task.suite ? surveyAgain(last.left) : await survey(surveyed)
    last = undefined
    const checkedOutBefore = checkedOut(pools)
    isInTest = true
    // Registered first, so it runs last: after the test's own afterEach and onTestFinished.
    onTestFinished(async () => {
      isInTest = false
      const stillOpen = () => [...openOf(handedOut), ...unreleased(checkedOut(pools) - checkedOutBefore)]
      try {
        const left = await refuseLeaks({
          ...{ before, surveyed, stillOpen },
          test: task.name,
          withinMs: leaksWithinMs,
        })
        last = { left, suite: task.suite }
      } catch (error) {
        // The next test must neither answer for this one nor wait for its locks.
        forgetTest(handedOut)
        await endStuckSessions(surveyed)
        throw error
      }
      forgetTest(handedOut)
    })
  })

  afterAll(async () => {
    await endStuckSessions(surveyed)
    await Promise.all(handedOut.map((one) => one.close()))
    await guard.query(`drop schema ${schema} cascade`)
    await Promise.all([admin.end(), guard.end()])
  })

  function url(): string {
    const name = isInTest ? applicationName : sharedName(applicationName)
    const parameters = { application_name: name, options: `-c search_path=${schema},public` }
    // Not by URLSearchParams, which writes "+" for a space: not every driver reads it back.
    const encoded = Object.entries(parameters).map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
    return `${address}${address.includes('?') ? '&' : '?'}${encoded.join('&')}`
  }

  function keep(handle: Omit<HandedOut, 'isShared'>): void {
    handedOut.push({ ...handle, isShared: !isInTest })
  }

  return {
    schema,
    applicationName,
    get url() {
      return url()
    },
    pool(options) {
      const pool = openPool(url(), options)
      pools.push(pool)
      keep({
        what: 'a pool that was not ended',
        isOpen: () => !pool.ended,
        close: () => closePool(pool),
      })
      return pool
    },
    async client() {
      const { client, isOpen } = await openClient(url())
      keep({
        what: 'a client that was not ended',
        isOpen,
        close: () => (isOpen() ? client.end() : Promise.resolve()),
      })
      return client
    },
    postgresJs(options) {
      // max_lifetime would keep a timer for each connection.
      const sql = postgres(url(), { max_lifetime: null, onnotice: () => {}, ...options })
      // Whether it was ended cannot be asked; its sessions tell.
      keep({ what: 'a postgres.js client', isOpen: () => false, close: () => sql.end({ timeout: 1 }) })
      return sql
    },
    async query<Row extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
      const { rows } = await admin.query<Row>(text, values)
      return rows
    },
  }
}

function openPool(connectionString: string, options: pg.PoolConfig = {}): pg.Pool {
  // Without the idle timeout there is no timer per idle client, which would count as a handle left behind.
  const pool = new pg.Pool({ connectionString, idleTimeoutMillis: 0, ...options })
  // A client whose session a test terminates reports it as an event; without a listener that would end the run.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

async function closePool(pool: pg.Pool): Promise<void> {
  if (pool.ending) return
  const ended = pool.end()
  // The end of a pool waits for every client that was never released, that is for ever.
  if (checkedOut([pool]) === 0) await ended
}

async function openClient(connectionString: string): Promise<{ client: pg.Client; isOpen: () => boolean }> {
  const client = new pg.Client({ connectionString })
  let isOpen = true
  client.on('error', () => {})
  client.once('end', () => {
    isOpen = false
  })
  await client.connect()
  return { client, isOpen: () => isOpen }
}

function openOf(handedOut: readonly HandedOut[]): string[] {
  return handedOut.filter((one) => !one.isShared && one.isOpen()).map((one) => one.what)
}

function checkedOut(pools: readonly pg.Pool[]): number {
  return pools.reduce((count, pool) => count + pool.totalCount - pool.idleCount, 0)
}

function unreleased(count: number): string[] {
  return count > 0 ? [`${count} pool client(s) that were not released`] : []
}

/** A leak is reported once: the next test must not answer for it. */
function forgetTest(handedOut: HandedOut[]): void {
  for (const [index, one] of handedOut.entries()) handedOut[index] = { ...one, isShared: true }
}
