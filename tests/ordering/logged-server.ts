// A server whose log can be read. Of the test's own: a slot waits for every transaction of the server, and keeps its log until it is dropped.
import { startPostgres } from '@postbox/embedded'
import pg from 'pg'
import { chosenBinaries } from '../support/chosen-binaries.ts'
import { createLogReader, type Transaction } from './read-log.ts'

const settings = {
  wal_level: 'logical',
  fsync: 'off',
  max_connections: '200',
  // Publishers take keys in any order, and give way.
  deadlock_timeout: '50ms',
}

export interface LoggedServer extends AsyncDisposable {
  readonly url: string
}

export async function startLoggedServer(): Promise<LoggedServer> {
  return startPostgres({ ...chosenBinaries, settings })
}

export interface CommitLog extends AsyncDisposable {
  /** What has committed since it was opened or read last. */
  read(): Promise<readonly Transaction[]>
}

const slot = 'history'

export async function openCommitLog(url: string): Promise<CommitLog> {
  const client = new pg.Client({ connectionString: url, options: '-c timezone=UTC -c datestyle=ISO' })
  await client.connect()
  await client.query('select pg_create_logical_replication_slot($1, $2)', [slot, 'test_decoding'])
  const reader = createLogReader()
  return {
    async read() {
      const { rows } = await client.query<{ data: string }>(
        `select data from pg_logical_slot_get_changes($1, null, null, 'include-timestamp', 'on', 'skip-empty-xacts', 'on')`,
        [slot],
      )
      return reader.read(rows.map(({ data }) => data))
    },
    async [Symbol.asyncDispose]() {
      await client.query('select pg_drop_replication_slot($1)', [slot])
      await client.end()
    },
  }
}
