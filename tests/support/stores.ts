// What keeps the messages of an outbox, each behind the same few members: a server, PGlite, memory.
import type { PGlite } from '@electric-sql/pglite'
import type pg from 'pg'
import { createOutbox, type Outbox, type OutboxOptions } from 'postbox'
import { afterAll, beforeAll } from 'vitest'
import type {
  Database,
  Executor,
  Handle,
  TransactionState,
} from '../../packages/postbox/src/adapters/executor.ts'
import { recogniseDatabase } from '../../packages/postbox/src/adapters/recognise.ts'
import { migrate } from '../../packages/postbox/src/runtime/migrate.ts'
import { type Names, resolveNames } from '../../packages/postbox/src/sql/names.ts'
import { createMemoryDatabase } from '../../packages/postbox/src/testing/memory/create-memory-database.ts'
import type {
  MemoryDatabase,
  MemoryTransaction,
} from '../../packages/postbox/src/testing/memory/memory-database.ts'
import { takeOver } from '../../packages/postbox/src/testing/take-over.ts'
import { useDatabase } from './database.ts'
import { openPGlite } from './pglite.ts'
import { prepareAll } from './prepare-all.ts'
import { eventually } from './signals.ts'
import { type StoreSnapshot, snapshotBySql, snapshotOfMemory } from './store-snapshot.ts'

/** The tables of one outbox, empty when it is opened. */
export interface Store {
  readonly database: Database
  readonly names: Names
  /** An outbox on these tables. */
  outbox(options?: OutboxOptions): Outbox
  begin(): Promise<StoreTransaction>
  /** Lets time pass: everything that is stored is that much older. */
  advance(ms: number): Promise<void>
  /** Resolves when a statement waits for another transaction. */
  untilWaiting(): Promise<void>
  /** What is committed. */
  snapshot(): Promise<StoreSnapshot>
  close(): Promise<void>
}

/** A transaction that lasts until it is told to end. */
export interface StoreTransaction extends Executor {
  /** What a user passes to publish. */
  readonly handle: unknown
  commit(): Promise<void>
  rollback(): Promise<void>
}

export interface StoreKind {
  readonly name: string
  /** Whether statements can run beside an open transaction, and transactions beside one another. */
  readonly hasSessions: boolean
  /** Whether its statements are run as SQL. */
  readonly isDatabase: boolean
  /** Registers what has to be there before and gone after the tests of a describe, and opens its stores. One at a time: they share their tables. */
  use(): () => Promise<Store>
}

export const serverStore: StoreKind = { name: 'pg', hasSessions: true, isDatabase: true, use: useServer }
export const memoryStore: StoreKind = {
  name: 'memory',
  hasSessions: true,
  isDatabase: false,
  use: () => openMemory,
}
export const pgliteStore: StoreKind = { name: 'PGlite', hasSessions: false, isDatabase: true, use: usePGlite }

function useServer(): () => Promise<Store> {
  const files = useDatabase()
  let pool: pg.Pool
  let names: Names
  beforeAll(async () => {
    pool = files.pool({ max: 6 })
    pool.on('connect', prepareAll)
    names = resolveNames({ schema: files.schema, table: 'outbox' })
    await migrate(recognised(pool), names)
  })
  const isWaiting = async (): Promise<boolean> => {
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and starts_with(application_name, $1)`
    return (await files.query(waiting, [files.applicationName])).length > 0
  }
  return () =>
    storeBySql({
      ...{ client: pool, database: recognised(pool), names },
      begin: () => beginOnPool(pool),
      untilWaiting: async () => void (await eventually(isWaiting, { what: 'a statement that waits' })),
    })
}

function usePGlite(): () => Promise<Store> {
  const names = resolveNames({ schema: 'public', table: 'outbox' })
  let db: PGlite
  beforeAll(async () => {
    db = await openPGlite()
    await migrate(recognised(db), names)
  })
  afterAll(() => db.close())
  return () =>
    storeBySql({
      ...{ client: db, database: recognised(db), names },
      begin: () => beginOnPGlite(db),
      // With one session there is nobody to wait for.
      untilWaiting: async () => {},
    })
}

async function openMemory(): Promise<Store> {
  // It never stands still: of two statements one is the later, as on a server.
  let now = Date.UTC(2026, 0, 1)
  const database = createMemoryDatabase({ now: () => ++now })
  return {
    database,
    outbox: (options) => outboxOn(database, options),
    names: resolveNames({ schema: 'public', table: 'outbox' }),
    async begin() {
      const tx = database.begin()
      const { commit, rollback } = tx
      return {
        handle: tx,
        run: (statement) => tx.run(statement),
        commit: async () => commit(),
        rollback: async () => rollback(),
      }
    },
    async advance(ms) {
      now += ms
    },
    // It began to when it was sent.
    untilWaiting: async () => {},
    snapshot: async () => snapshotOfMemory(now, database),
    close: async () => {},
  }
}

/** As the test kit does it. */
function outboxOn(database: MemoryDatabase, options?: OutboxOptions): Outbox {
  const outbox = createOutbox(options)
  const handleOf = (given: unknown): Handle => {
    const tx = given as MemoryTransaction
    const transactionState = (): TransactionState =>
      tx.isOpen ? { inside: true } : { inside: false, because: 'ended' }
    return { client: 'memory', singleSession: true, transactionState, run: (statement) => tx.run(statement) }
  }
  takeOver(outbox, {
    ...{ handleOf, database: () => database, listenDatabase: () => database },
    opener: async () => database,
    internals: undefined,
  })
  return outbox
}

type SqlStore = Pick<Store, 'database' | 'names' | 'begin' | 'untilWaiting'> & { readonly client: unknown }

async function storeBySql(given: SqlStore): Promise<Store> {
  const { client, database, names } = given
  const { schema, table } = names.plain
  const open = new Set<StoreTransaction>()
  const exec = (text: string): Promise<readonly unknown[]> =>
    database.run({ name: 'store', text, values: [] })
  // Not by truncate, which takes ten times as long for a few rows.
  const clear = async (): Promise<void> => {
    const sequences = [names.sequence, names.deadSequence, names.deliveredSequence]
    await exec(`with messages as (delete from ${names.messages}), dead as (delete from ${names.dead}),
        delivered as (delete from ${names.delivered}), handled as (delete from ${names.handled}),
        operations as (delete from ${names.operations}), queues as (delete from ${names.queues})
      select ${sequences.map((name) => `setval('${name}', 1, false)`).join()}`)
  }
  return {
    ...given,
    outbox: (options) => createOutbox({ ...options, database: client as never, schema, table }),
    async begin() {
      const tx = await given.begin()
      open.add(tx)
      const end = (how: 'commit' | 'rollback') => (open.delete(tx) ? tx[how]() : Promise.resolve())
      return { ...tx, commit: () => end('commit'), rollback: () => end('rollback') }
    },
    async advance(ms) {
      const columns = ['started_at', 'updated_at', 'finished_at', 'last_due_at']
      const place = `place = jsonb_set(place, '{failedMicros}', to_jsonb(((place ->> 'failedMicros')::bigint - ${ms * 1_000})::text))`
      await exec(`with dead as (${ageing(names.dead, times, ms)}),
          handled as (${ageing(names.handled, ['handled_at'], ms)}),
          delivered as (${ageing(names.delivered, ['created_at', 'delivered_at'], ms)}),
          operations as (${ageing(names.operations, columns, ms)}, ${place})
        ${ageing(names.messages, [...times, 'due_at', 'leased_until', 'parked_at'], ms)}`)
    },
    snapshot: () => snapshotBySql(database, names),
    async close() {
      // Those of a test that failed: the next one would wait for them.
      for (const tx of open) await tx.rollback()
      // For the next one; and a lease that is left behind counts as a leak.
      await clear()
    },
  }
}

const times = ['created_at', 'first_attempt_at', 'last_attempt_at', 'failed_at']

function ageing(table: string, columns: readonly string[], ms: number): string {
  const set = columns.map((column) => `${column} = ${column} - interval '${ms} milliseconds'`)
  return `update ${table} set ${set.join(', ')}`
}

async function beginOnPool(pool: pg.Pool): Promise<StoreTransaction> {
  const client = await pool.connect()
  await client.query('begin')
  const end = async (text: string): Promise<void> => {
    await client.query(text)
    client.release()
  }
  return {
    handle: client,
    run: async ({ text, values }) => (await client.query(text, [...values])).rows as never,
    commit: () => end('commit'),
    rollback: () => end('rollback'),
  }
}

/** Until it ends, whoever else asks has to wait. */
async function beginOnPGlite(db: PGlite): Promise<StoreTransaction> {
  type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0]
  let end = (_how: 'commit' | 'rollback'): void => {}
  const ending = new Promise<'commit' | 'rollback'>((resolve) => {
    end = resolve
  })
  let ended: Promise<void> = Promise.resolve()
  const tx = await new Promise<Tx>((resolve, reject) => {
    ended = db.transaction(async (opened) => {
      resolve(opened)
      if ((await ending) === 'rollback') await opened.rollback()
    })
    ended.catch(reject)
  })
  return {
    handle: tx,
    run: async ({ text, values }) => (await tx.query(text, [...values])).rows as never,
    commit: () => {
      end('commit')
      return ended
    },
    rollback: () => {
      end('rollback')
      return ended
    },
  }
}

function recognised(client: unknown): Database {
  const database = recogniseDatabase(client)
  if (database === null) throw new Error('expected a client that is known')
  return database
}
