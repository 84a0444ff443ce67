import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createOutbox } from 'postbox'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { eventually, signal } from '../support/signals.ts'
import { type ClientUnderTest, ownClient, pgClient, pglite, postgresJs } from './clients.ts'
import { describeDatabase } from './database-suite.ts'

// With its guard of leaks, which is not for PGlite: that one sets a timer of its own for its statistics.
describe('on a server', () => {
  const database = useDatabase()

  /** The address with more settings for its sessions. */
  function urlWith(settings: string): string {
    const options = new URL(database.url).searchParams.get('options')
    return database.url.replace(/(options=)[^&]*/, `$1${encodeURIComponent(`${options} ${settings}`)}`)
  }

  const look = (): Promise<{ pid: number; locks: number }[]> =>
    database.query(
      `select a.pid, count(l.pid)::int as locks from pg_stat_activity as a
       left join pg_locks as l on l.pid = a.pid and l.locktype = 'advisory'
      where a.application_name = $1 group by a.pid`,
      [database.applicationName],
    )

  const query = (text: string): Promise<Record<string, unknown>[]> => database.query(text)
  const server = { schema: (): string => database.schema, query, look }

  describeDatabase('pg', {
    ...server,
    table: 'outbox pg',
    make: async (settings) => pgClient(urlWith(settings), { old: false }),
    canListen: true,
    saysIsolation: true,
    sessions: 2,
  })

  describeDatabase('pg odd', {
    ...server,
    table: 'outbox pg odd',
    make: async (settings) => pgClient(urlWith(settings), { old: false, hostile: true }),
    canListen: true,
    saysIsolation: true,
    sessions: 2,
  })

  describeDatabase('postgres.js', {
    ...server,
    table: 'outbox postgres.js',
    make: async (settings) => postgresJs(urlWith(settings), { hostile: false }),
    canListen: true,
    saysIsolation: true,
    sessions: 2,
  })

  describeDatabase('postgres.js odd', {
    ...server,
    table: 'outbox postgres.js odd',
    make: async (settings) => postgresJs(urlWith(settings), { hostile: true }),
    canListen: true,
    saysIsolation: true,
    sessions: 2,
  })

  describeDatabase('own', {
    ...server,
    table: 'outbox own',
    make: async (settings) => ownClient(urlWith(settings)),
    canListen: false,
    saysIsolation: false,
    sessions: 1,
  })

  test('a postgres.js that is ended right after the outbox leaves no session behind, even one that was still connecting', async () => {
    const listening = signal<() => void>('the listening connection to be asked for')
    let asked = 0
    const held = async (): Promise<Socket> => {
      if (++asked === 2) await new Promise<void>((resolve) => listening.send(resolve))
      const { hostname, port } = new URL(database.url)
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      return socket
    }
    const sql = postgres(database.url, {
      max: 1,
      max_lifetime: null,
      onnotice: () => {},
      socket: held,
    } as object)
    const outbox = createOutbox({ database: sql, schema: database.schema, table: 'outbox pg', logger: false })
    outbox.subscribe('orders', () => {})
    await outbox.start()
    const goOn = await listening.wait()

    const ended = outbox.stop().then(() => sql.end())
    // Long enough for a stop that does not wait for it.
    for (let queries = 0; queries < 30; queries++) await look()
    goOn()
    await ended

    await eventually(async () => (await look()).length === 0, { what: 'the sessions to end' })
  })
})

describe('in the process', () => {
  let inProcess: ClientUnderTest

  beforeAll(async () => {
    inProcess = await pglite()
  })

  afterAll(() => inProcess.close())

  describeDatabase('PGlite', {
    schema: () => 'public',
    query: (text) => inProcess.query(text),
    table: 'outbox',
    // One for all tests: it takes a second to begin. What it was set to for one of them is reset by the next.
    make: async (settings) => {
      const level = settings.includes('repeatable') ? 'repeatable read' : 'read committed'
      await inProcess.query(`set default_transaction_isolation = '${level}'`)
      return { ...inProcess, close: async () => {} }
    },
    look: async () => [],
    canListen: true,
    saysIsolation: false,
    sessions: null,
  })
})
