import { startPostgres } from '@postbox/embedded'
import pg from 'pg'
import { cpuMs } from './cpu.ts'

/** A server as it is installed: fsync, autovacuum, checkpoints. */
export interface TimingServer extends AsyncDisposable {
  readonly url: string
  readonly version: string
  /** Statements and bytes of WAL that the work has cost. */
  cost(work: () => Promise<void>): Promise<Cost>
  query<Row extends object>(text: string, values?: unknown[]): Promise<readonly Row[]>
}

export interface Cost {
  readonly ms: number
  /** Processor time of this process and of the server. */
  readonly cpuMs: number
  readonly statements: number
  readonly walBytes: number
}

const settings = {
  shared_preload_libraries: 'pg_stat_statements',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
  max_connections: '150',
}

export async function startTimingServer(): Promise<TimingServer> {
  const postgres = await startPostgres({ settings })
  const observer = new pg.Client({ connectionString: postgres.url })
  await observer.connect()
  await observer.query('create extension pg_stat_statements')
  const query = async <Row extends object>(text: string, values: unknown[] = []): Promise<readonly Row[]> =>
    (await observer.query<Row>(text, values)).rows
  const [version] = await query<{ server_version: string }>('show server_version')
  const [backend] = await query<{ pid: number }>('select pg_backend_pid() as pid')
  const read = async (): Promise<{ readonly statements: number; readonly wal: number }> => {
    const [row] = await query<{ statements: number; wal: number }>(
      `select (select coalesce(sum(calls), 0)::int from pg_stat_statements) as statements,
              pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal`,
    )
    return row!
  }
  return {
    url: postgres.url,
    version: `PostgreSQL ${version?.server_version.split(' ')[0]}`,
    query,
    async cost(work) {
      await query('checkpoint')
      const before = await read()
      const cpuBefore = await cpuMs(backend!.pid)
      const startedAt = performance.now()
      await work()
      const ms = performance.now() - startedAt
      const cpu = (await cpuMs(backend!.pid)) - cpuBefore
      const after = await read()
      return {
        ms,
        cpuMs: cpu,
        statements: after.statements - before.statements,
        walBytes: after.wal - before.wal,
      }
    },
    async [Symbol.asyncDispose]() {
      await observer.end()
      await postgres.stop()
    },
  }
}
