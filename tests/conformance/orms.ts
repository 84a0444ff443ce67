import type { PGlite } from '@electric-sql/pglite'
import { sql } from 'drizzle-orm'
import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres'
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core'
import { drizzle as drizzleOnPGlite } from 'drizzle-orm/pglite'
import { drizzle as drizzleOnPostgresJs } from 'drizzle-orm/postgres-js'
import {
  CamelCasePlugin,
  CompiledQuery,
  Kysely,
  ParseJSONResultsPlugin,
  PostgresDialect,
  type Transaction,
} from 'kysely'
import type pg from 'pg'
import postgres from 'postgres'
import { type ClientUnderTest, type Inside, pgClient, pglite, type Refused } from './clients.ts'

type Row = Record<string, unknown>
type DrizzleDb = PgDatabase<PgQueryResultHKT>
type DrizzleTx = Parameters<Parameters<DrizzleDb['transaction']>[0]>[0]

/** A client under test whose transactions are an ORM's. */
export interface OrmUnderTest extends ClientUnderTest {
  /** What a user passes as `orm`. */
  readonly orm: unknown
}

const nothing = (): void => {}

/** What Drizzle itself logs, its own begin and commit included where it sends them. */
function logInto(sent: string[]) {
  return { logger: { logQuery: (text: string): void => void sent.push(text) } }
}

export function drizzlePg(url: string, { old = false } = {}): OrmUnderTest {
  const inner = pgClient(url, { old })
  const sent: string[] = []
  const db = drizzleOnPg(inner.database as pg.Pool, logInto(sent))
  return { ...inner, ...onDrizzle(db, { ended: 'no transaction is open' }), statements: () => sent }
}

export function drizzlePostgresJs(url: string): OrmUnderTest {
  const sent: string[] = []
  // Of its own: Drizzle changes how the client it is given reads and writes times.
  const client = postgres(url, { max: 3, max_lifetime: null, onnotice: nothing })
  const db = drizzleOnPostgresJs(client, logInto(sent))
  return {
    ...onDrizzle(db, { ended: null }),
    database: client,
    query: (text) => client.unsafe(text),
    statements: () => sent,
    close: () => client.end(),
  }
}

export async function drizzlePGlite(): Promise<OrmUnderTest> {
  const inner = await pglite()
  const sent: string[] = []
  const db = drizzleOnPGlite(inner.database as PGlite, logInto(sent))
  return { ...inner, ...onDrizzle(db, { ended: 'has ended' }), statements: () => sent }
}

function onDrizzle(
  db: DrizzleDb,
  /** What is said of a transaction that was kept; null: the driver cannot tell. */
  { ended: says }: { readonly ended: string | null },
): Pick<OrmUnderTest, 'orm' | 'inside' | 'transaction' | 'refused'> {
  const inside = (tx: DrizzleTx): Inside => ({
    handle: tx,
    run: async (text) => {
      const result = (await tx.execute(sql.raw(text))) as Row[] | { readonly rows: Row[] }
      return Array.isArray(result) ? [...result] : result.rows
    },
    savepoint: async (work) => {
      await tx.transaction((inner) => work(inside(inner))).catch(nothing)
    },
  })
  return {
    orm: db,
    inside: (handle) => inside(handle as DrizzleTx),
    transaction: (work) => db.transaction((tx) => work(inside(tx))),
    async refused() {
      let kept: unknown
      await db.transaction(async (tx) => {
        kept = tx
      })
      const itself: Refused = { what: 'the database', handle: db, says: 'db.transaction', release: nothing }
      return says === null
        ? [itself]
        : [itself, { what: 'an ended one', handle: kept, says, release: nothing }]
    },
  }
}

export type Controlled = 'by a callback' | 'by hand'

/** `plugins`: with those that rename what comes back, and parse it. */
export function kysely(
  url: string,
  { controlled, plugins }: { readonly controlled: Controlled; readonly plugins: boolean },
): OrmUnderTest {
  const inner = pgClient(url, { old: false })
  const dialect = new PostgresDialect({ pool: inner.database as pg.Pool })
  const odd = plugins ? [new CamelCasePlugin(), new ParseJSONResultsPlugin()] : []
  const db = new Kysely<unknown>({ dialect, plugins: odd })
  return {
    ...inner,
    orm: db,
    inside: (handle) => insideKysely(handle as Transaction<unknown>),
    transaction: (work) =>
      controlled === 'by hand'
        ? byHand(db, (tx) => work(insideKysely(tx)))
        : db.transaction().execute((tx) => work(insideKysely(tx))),
    async refused() {
      const committed = await db.startTransaction().execute()
      await committed.commit().execute()
      const rolledBack = await db.startTransaction().execute()
      await rolledBack.rollback().execute()
      return [
        { what: 'the instance', handle: db, says: 'db.transaction()', release: nothing },
        { what: 'a committed one', handle: committed, says: 'has ended', release: nothing },
        { what: 'one rolled back', handle: rolledBack, says: 'has ended', release: nothing },
        {
          what: 'one with plugins',
          handle: db.withPlugin(new CamelCasePlugin()),
          says: 'db.transaction()',
          release: nothing,
        },
      ]
    },
  }
}

async function byHand<T>(db: Kysely<unknown>, work: (tx: Transaction<unknown>) => Promise<T>): Promise<T> {
  const tx = await db.startTransaction().execute()
  try {
    const result = await work(tx)
    await tx.commit().execute()
    return result
  } catch (error) {
    await tx.rollback().execute()
    throw error
  }
}

/** A Kysely that has begun has no nested transactions but savepoints, which are said in SQL unless it is controlled. */
function insideKysely(tx: Transaction<unknown>): Inside {
  const run = async (text: string): Promise<readonly Row[]> =>
    (await tx.withoutPlugins().executeQuery<Row>(CompiledQuery.raw(text))).rows
  return {
    handle: tx,
    run,
    savepoint: async (work) => {
      await run('savepoint here')
      await work(insideKysely(tx)).catch(() => run('rollback to savepoint here'))
    },
  }
}
