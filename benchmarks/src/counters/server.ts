import { startPostgres } from '@postbox/embedded'
import pg from 'pg'

/** A server on which the same work costs the same: nothing runs that was not asked for. */
export interface CountingServer extends AsyncDisposable {
  /** For measured work: what this role runs is counted, and nothing else. */
  readonly workUrl: string
  /** A superuser's connection for reading counters. */
  readonly observer: pg.Client
  /** A further connection that is not counted. */
  connect(): Promise<pg.Client>
  readonly version: string
}

export const workRole = 'work'

const settings = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track': 'all',
  'pg_stat_statements.track_utility': 'on',
  // Vacuum would remove dead rows, and write WAL, whenever it happens to come by.
  autovacuum: 'off',
  // The first change of a page after a checkpoint writes the whole page: up to two thirds of all bytes, by chance.
  full_page_writes: 'off',
  checkpoint_timeout: '1h',
  max_wal_size: '8GB',
  wal_level: 'replica',
  // Nothing is timed, and nothing has to survive.
  fsync: 'off',
} as const

export async function startCountingServer(): Promise<CountingServer> {
  const postgres = await startPostgres({ settings })
  const observers: pg.Client[] = []
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: postgres.url })
    observers.push(client)
    await client.connect()
    return client
  }
  const stop = async (): Promise<void> => {
    await Promise.all(observers.map((client) => client.end()))
    await postgres.stop()
  }
  try {
    const observer = await connect()
    await observer.query('create extension pg_stat_statements')
    await observer.query('create extension pg_walinspect')
    await observer.query(`create role ${workRole} login`)
    await observer.query(`grant create on database postgres to ${workRole}`)
    const { rows } = await observer.query<{ server_version: string }>('show server_version')
    const version = `PostgreSQL ${rows[0]?.server_version.split(' ')[0]}`
    return {
      workUrl: workUrlOf(postgres.url),
      observer,
      connect,
      version,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

function workUrlOf(url: string): string {
  const work = new URL(url)
  work.username = workRole
  return work.href
}
