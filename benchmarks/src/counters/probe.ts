import { setTimeout as wait } from 'node:timers/promises'
import type pg from 'pg'
import type { Totals } from './measurement.ts'
import { kindOf, type StatementKind, type WalOfType, walOf } from './normalise.ts'
import { workRole } from './server.ts'

/** Counters of the server before the measured work. */
export interface Start {
  readonly rows: RowCounters
  readonly lsn: string
}

export interface Counted {
  readonly totals: Omit<Totals, 'notifications'>
  /** What the WAL is made of: the place to look when it has grown. */
  readonly wal: readonly WalOfType[]
}

type RowCounters = Pick<Totals, 'rowsInserted' | 'rowsUpdated' | 'hotUpdates' | 'rowsDeleted' | 'deadRows'>

export async function beginCounting(observer: pg.Client, schema: string): Promise<Start> {
  await untilNobodyWorks(observer)
  const rows = await readRows(observer, schema)
  await observer.query('select pg_stat_statements_reset()')
  return { rows, lsn: await currentLsn(observer) }
}

export async function endCounting(observer: pg.Client, schema: string, start: Start): Promise<Counted> {
  await untilNobodyWorks(observer)
  const wal = await readWal(observer, start.lsn)
  const rows = await readRows(observer, schema)
  const statements = await readStatements(observer)
  const totals = {
    insertStatements: statements.insert,
    claimStatements: statements.claim,
    deleteStatements: statements.delete,
    blockStatements: statements.block,
    otherStatements: statements.other,
    rowsInserted: rows.rowsInserted - start.rows.rowsInserted,
    rowsUpdated: rows.rowsUpdated - start.rows.rowsUpdated,
    hotUpdates: rows.hotUpdates - start.rows.hotUpdates,
    rowsDeleted: rows.rowsDeleted - start.rows.rowsDeleted,
    deadRows: rows.deadRows - start.rows.deadRows,
    ...walOf(wal),
  }
  return { totals, wal }
}

/**
 * A backend hands its row counters over when it ends, and otherwise up to a second late. It leaves pg_stat_activity
 * after that, so nobody there means that everything is counted.
 */
async function untilNobodyWorks(observer: pg.Client): Promise<void> {
  for (const deadline = Date.now() + 60_000; ; await wait(5)) {
    const text = 'select count(*)::int as working from pg_stat_activity where usename = $1'
    const { rows } = await observer.query<{ working: number }>(text, [workRole])
    if (rows[0]?.working === 0) return
    if (Date.now() > deadline) throw new Error(`${rows[0]?.working} connections were not closed`)
  }
}

async function readRows(observer: pg.Client, schema: string): Promise<RowCounters> {
  const text = `
    select coalesce(sum(n_tup_ins), 0)::int as "rowsInserted",
           coalesce(sum(n_tup_upd), 0)::int as "rowsUpdated",
           coalesce(sum(n_tup_hot_upd), 0)::int as "hotUpdates",
           coalesce(sum(n_tup_del), 0)::int as "rowsDeleted",
           coalesce(sum(n_dead_tup), 0)::int as "deadRows"
      from pg_stat_user_tables
     where schemaname = $1`
  const { rows } = await observer.query<RowCounters>(text, [schema])
  return rows[0]!
}

async function readStatements(observer: pg.Client): Promise<Record<StatementKind, number>> {
  const text = `
    select s.query, s.calls::int as calls
      from pg_stat_statements as s
      join pg_roles as r on r.oid = s.userid
     where r.rolname = $1`
  const { rows } = await observer.query<{ query: string; calls: number }>(text, [workRole])
  const counts = { insert: 0, claim: 0, delete: 0, block: 0, other: 0 }
  for (const { query, calls } of rows) counts[kindOf(query)] += calls
  return counts
}

async function currentLsn(observer: pg.Client): Promise<string> {
  const text = 'select pg_current_wal_insert_lsn()::text as lsn'
  const { rows } = await observer.query<{ lsn: string }>(text)
  return rows[0]!.lsn
}

/** Read record by record instead of by the distance of two positions: that includes what the server writes by itself. */
async function readWal(observer: pg.Client, start: string): Promise<readonly WalOfType[]> {
  const end = await currentLsn(observer)
  // Only what has been flushed can be read, and an asynchronous commit has not: this one is synchronous.
  await observer.query(`select pg_logical_emit_message(true, 'counters', 'flush')`)
  const text = `
    select "resource_manager/record_type" as type, count::int as records, combined_size::int as bytes
      from pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, true)
     where count > 0
     order by type`
  const { rows } = await observer.query<WalOfType>(text, [start, end])
  return rows
}
