import pg from 'pg'
import type { OwnHandle } from 'postbox'
import postgres from 'postgres'
import { openPGlite } from '../support/pglite.ts'

/** Work inside a transaction of some client; `run` is the client's own way to send SQL on it. */
export interface Inside {
  /** What a user passes to publish. */
  readonly handle: unknown
  run(text: string): Promise<readonly Record<string, unknown>[]>
  /** Runs the work in a savepoint, rolled back when the work throws; the error is swallowed. */
  savepoint(work: (inner: Inside) => Promise<void>): Promise<void>
}

/** One client library, as the suite needs it. */
export interface ClientUnderTest {
  /** What a user passes as `database`. */
  readonly database: unknown
  /** Commits what the work did; rolls back and rethrows when it throws. */
  transaction<T>(work: (inside: Inside) => Promise<T>): Promise<T>
  /** The same of a transaction that somebody else has begun by this client. */
  inside(handle: unknown): Inside
  /** Statements sent by the client so far, its own begin and commit included. */
  statements(): readonly string[]
  /** Handles that are no transactions, each with a word that the refusal must contain. */
  refused(): Promise<readonly Refused[]>
  query(text: string): Promise<readonly Record<string, unknown>[]>
  close(): Promise<void>
}

export interface Refused {
  readonly what: string
  readonly handle: unknown
  readonly says: string
  release(): void
}

const nothing = (): void => {}

/**
 * node-postgres. `old` takes away what only pg 8.21 and later can tell, so that the mark has to. `hostile`: a session with every
 * setting that changes how values are shown, and a client whose type parsers were replaced.
 */
export function pgClient(
  url: string,
  { old, hostile = false }: { old: boolean; hostile?: boolean },
): ClientUnderTest {
  const odd = hostile
    ? { types: { getTypeParser: () => (text: string) => text }, options: hostileSettings(url) }
    : {}
  const pool = new pg.Pool({
    connectionString: hostile ? withoutOptions(url) : url,
    max: 3,
    idleTimeoutMillis: 0,
    ...odd,
  } as pg.PoolConfig)
  const sent: string[] = []
  pool.on('connect', (client) => {
    record(client, 'query', sent)
    if (old) Object.defineProperty(client, 'getTransactionStatus', { value: undefined })
  })
  const inside = (client: pg.PoolClient): Inside => ({
    handle: client,
    // With the usual parsers, whatever the client was given: these are the suite's own questions.
    run: async (text) => (await client.query({ text, types: pg.types })).rows,
    savepoint: async (work) => {
      await client.query('savepoint here')
      await work(inside(client)).catch(() => client.query('rollback to savepoint here'))
    },
  })
  return {
    database: pool,
    inside: (handle) => inside(handle as pg.PoolClient),
    statements: () => sent,
    query: async (text) => (await pool.query({ text, types: pg.types })).rows,
    close: () => pool.end(),
    async transaction(work) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const result = await work(inside(client))
        await client.query('commit')
        return result
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
    async refused() {
      const plain = await pool.connect()
      const finished = await pool.connect()
      await finished.query('begin')
      await finished.query('commit')
      return [
        { what: 'a pool', handle: pool, says: 'pool', release: nothing },
        {
          what: 'a connection without a transaction',
          handle: plain,
          says: 'no transaction is open',
          release: () => plain.release(),
        },
        {
          what: 'a finished transaction',
          handle: finished,
          says: 'no transaction is open',
          release: () => finished.release(),
        },
      ]
    },
  }
}

/** `hostile`: a session that shows bytes in another way and a client that does not know array types. */
export function postgresJs(url: string, { hostile }: { readonly hostile: boolean }): ClientUnderTest {
  const sent: string[] = []
  const odd = hostile ? { fetch_types: false, connection: { bytea_output: 'escape' } } : {}
  const sql = postgres(url, {
    ...odd,
    max: 3,
    max_lifetime: null,
    onnotice: nothing,
    debug: (_, text) => sent.push(text),
  })
  const inside = (tx: postgres.TransactionSql): Inside => ({
    handle: tx,
    run: (text) => tx.unsafe(text),
    savepoint: async (work) => {
      await tx.savepoint((inner) => work(inside(inner))).catch(nothing)
    },
  })
  return {
    database: sql,
    inside: (handle) => inside(handle as postgres.TransactionSql),
    statements: () => sent,
    query: (text) => sql.unsafe(text),
    close: () => sql.end(),
    transaction: <T>(work: (inside: Inside) => Promise<T>) =>
      sql.begin((tx) => work(inside(tx))) as Promise<T>,
    async refused() {
      const reserved = await sql.reserve()
      return [
        { what: 'the client itself', handle: sql, says: 'sql.begin', release: nothing },
        {
          what: 'a reserved connection',
          handle: reserved,
          says: 'no transaction is open',
          release: () => reserved.release(),
        },
      ]
    },
  }
}

export async function pglite(): Promise<ClientUnderTest> {
  const db = await openPGlite()
  const sent: string[] = []
  type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0]
  const inside = (tx: Tx): Inside => ({
    handle: tx,
    run: async (text) => (await tx.query<Record<string, unknown>>(text)).rows,
    savepoint: async (work) => {
      await tx.query('savepoint here')
      await work(inside(tx)).catch(() => tx.query('rollback to savepoint here'))
    },
  })
  let finished: unknown
  return {
    database: db,
    inside: (handle) => inside(handle as Tx),
    statements: () => sent,
    query: async (text) => (await db.query<Record<string, unknown>>(text)).rows,
    close: () => db.close(),
    transaction: (work) =>
      db.transaction((tx) => {
        record(tx, 'query', sent)
        finished = tx
        return work(inside(tx))
      }),
    refused: async () => [
      { what: 'the instance itself', handle: db, says: 'db.transaction', release: nothing },
      { what: 'a finished transaction', handle: finished, says: 'has ended', release: nothing },
    ],
  }
}

/** A client we do not know, in the two members that its user writes. */
export function ownClient(url: string): ClientUnderTest {
  const inner = pgClient(url, { old: false })
  type Own = OwnHandle & { readonly inside: Inside }
  const own = (inside: Inside): Own => {
    const client = inside.handle as pg.PoolClient
    return { query: rowsOf(client), inTransaction: () => client.getTransactionStatus() === 'T', inside }
  }
  const wrap = (inside: Inside): Inside => ({
    handle: own(inside),
    run: inside.run,
    savepoint: (work) => inside.savepoint((nested) => work(wrap(nested))),
  })
  const pool = inner.database as pg.Pool
  return {
    ...inner,
    database: {
      query: rowsOf(pool),
      transaction: <T>(work: (tx: Own) => Promise<T>) => inner.transaction((inside) => work(own(inside))),
    },
    inside: (handle) => wrap((handle as Own).inside),
    transaction: (work) => inner.transaction((inside) => work(wrap(inside))),
    refused: async () => [
      {
        what: 'one that says no',
        handle: { query: rowsOf(pool), inTransaction: false },
        says: 'false',
        release: nothing,
      },
      {
        what: 'one that says no when asked',
        handle: { query: rowsOf(pool), inTransaction: () => false },
        says: 'false',
        release: nothing,
      },
      {
        what: 'one that says nothing',
        handle: { query: rowsOf(pool), inTransaction: undefined },
        says: 'undefined',
        release: nothing,
      },
    ],
  }
}

const odd = {
  bytea_output: 'escape',
  DateStyle: 'German',
  TimeZone: 'Asia/Kathmandu',
  IntervalStyle: 'sql_standard',
  extra_float_digits: '-15',
  standard_conforming_strings: 'off',
}

function hostileSettings(url: string): string {
  const settings = Object.entries(odd).map(([name, value]) => `-c ${name}=${value}`)
  return [new URL(url).searchParams.get('options'), ...settings].join(' ')
}

function withoutOptions(url: string): string {
  const bare = new URL(url)
  bare.searchParams.delete('options')
  return bare.href.replaceAll('+', '%20')
}

function rowsOf(client: pg.Pool | pg.PoolClient) {
  return async (text: string, values: readonly unknown[]): Promise<readonly unknown[]> =>
    (await client.query(text, [...values])).rows
}

/** Writes down every statement that goes through a client's own query method. */
function record(client: object, method: 'query', sent: string[]): void {
  const original: (...args: unknown[]) => unknown = (client as never)[method]
  Object.defineProperty(client, method, {
    value(this: unknown, ...args: unknown[]) {
      sent.push(String(typeof args[0] === 'string' ? args[0] : (args[0] as { text?: string }).text))
      return original.apply(this, args)
    },
  })
}
