import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { serverMs } from '../order/cpu.ts'

/** A database of one contender in one run. */
export interface BenchDatabase extends AsyncDisposable {
  readonly url: string
  query<Row extends object>(text: string): Promise<readonly Row[]>
  /** Holds a snapshot until it is released: no row that dies meanwhile can be removed. */
  pinXmin(): Promise<{ release(): Promise<void> }>
  /** What has been spent up to now. Waits until every other connection is closed: a backend hands its counters over when it ends. */
  spent(): Promise<Spending>
}

/** null: cannot be known on this server. */
export interface Spending {
  readonly statements: number | null
  readonly transactions: number
  readonly walBytes: number
  /** Versions of rows that updates and deletes have left behind, vacuumed or not. */
  readonly deadRows: number
  readonly updates: number
  readonly hotUpdates: number
  readonly databaseCpuMs: number | null
}

interface DatabaseInput {
  readonly url: string
  readonly isLocal: boolean
  readonly drop: () => Promise<void>
}

export async function openDatabase({ url, isLocal, drop }: DatabaseInput): Promise<BenchDatabase> {
  const observer = new pg.Client({ connectionString: url })
  await observer.connect()
  const query = async <Row extends object>(text: string): Promise<readonly Row[]> =>
    (await observer.query<Row>(text)).rows
  const [backend] = await query<{ pid: number }>('select pg_backend_pid() as pid')
  return {
    url,
    query,
    async pinXmin() {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await client.query('begin isolation level repeatable read')
      await client.query('select count(*) from pg_class')
      return { release: () => client.end() }
    },
    async spent() {
      await untilAlone(query)
      const [row] = await query<Omit<Spending, 'statements' | 'databaseCpuMs'>>(countersText)
      const [calls] = await query<{ calls: number }>(statementsText).catch(() => [])
      const cpu = isLocal ? await serverMs(backend!.pid).catch(() => null) : null
      return { ...row!, statements: calls?.calls ?? null, databaseCpuMs: cpu }
    },
    async [Symbol.asyncDispose]() {
      await observer.end()
      await drop()
    },
  }
}

const countersText = `
  select (select xact_commit::float8 from pg_stat_database where datname = current_database()) as "transactions",
         pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as "walBytes",
         coalesce(sum(n_tup_upd + n_tup_del), 0)::float8 as "deadRows",
         coalesce(sum(n_tup_upd), 0)::float8 as "updates",
         coalesce(sum(n_tup_hot_upd), 0)::float8 as "hotUpdates"
    from pg_stat_user_tables`

const statementsText = `
  select coalesce(sum(s.calls), 0)::float8 as calls
    from pg_stat_statements as s
    join pg_database as d on d.oid = s.dbid
   where d.datname = current_database()`

type Query = <Row extends object>(text: string) => Promise<readonly Row[]>

async function untilAlone(query: Query): Promise<void> {
  const text = `
    select count(*)::int as others
      from pg_stat_activity
     where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`
  for (const deadline = Date.now() + 30_000; ; await wait(10)) {
    const [row] = await query<{ others: number }>(text)
    if (row!.others === 0) return
    if (Date.now() > deadline) throw new Error(`${row!.others} connections of the contender were not closed`)
  }
}
