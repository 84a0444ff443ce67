import { randomBytes } from 'node:crypto'
import { startPostgres } from '@postbox/embedded'
import pg from 'pg'
import { type BenchDatabase, openDatabase } from './database.ts'

export interface BenchServer extends AsyncDisposable {
  readonly version: string
  /** Those that differ from what the server would take by itself, and those that durability depends on. */
  readonly settings: Readonly<Record<string, string>>
  /** A new database; `make` has filled the template once, which is copied from then on. */
  database(template: string, make: (url: string) => Promise<void>): Promise<BenchDatabase>
}

const settings = {
  shared_preload_libraries: 'pg_stat_statements',
  shared_buffers: '512MB',
  max_connections: '200',
  // No checkpoint in the middle of one contender's run and not of another's: each run begins with one.
  max_wal_size: '8GB',
  checkpoint_timeout: '1h',
}

const shown = [
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'wal_level',
  'autovacuum',
  ...Object.keys(settings),
]

/** An embedded server, or somebody's, of which nothing is touched but databases that this run makes and drops. */
export async function startBenchServer(url: string | null): Promise<BenchServer> {
  const embedded = url === null ? await startPostgres({ settings }) : null
  const serverUrl = embedded?.url ?? url!
  const admin = new pg.Client({ connectionString: serverUrl })
  const close = async (): Promise<void> => {
    await admin.end()
    await embedded?.stop()
  }
  try {
    await admin.connect()
    if (embedded === null) await refuseFull(admin)
    return await openServer({ admin, serverUrl, isEmbedded: embedded !== null, close })
  } catch (error) {
    await close()
    throw error
  }
}

async function refuseFull(admin: pg.Client): Promise<void> {
  const text = `
    select format('%I.%I', n.nspname, c.relname) as name
      from pg_class as c
      join pg_namespace as n on n.oid = c.relnamespace
     where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and n.nspname !~ '^pg_temp'
     limit 1`
  const { rows } = await admin.query<{ name: string }>(text)
  if (rows[0] === undefined) return
  throw new Error(`the database is not empty (it has ${rows[0].name}): give an empty one, or none`)
}

interface Opened {
  readonly admin: pg.Client
  readonly serverUrl: string
  readonly isEmbedded: boolean
  readonly close: () => Promise<void>
}

async function openServer({ admin, serverUrl, isEmbedded, close }: Opened): Promise<BenchServer> {
  const prefix = `postbox_bench_${randomBytes(4).toString('hex')}`
  const made = new Set<string>()
  let runs = 0
  const templates = new Map<string, string>()
  const create = async (name: string, template: string | null): Promise<string> => {
    // Before it is there: whatever happens meanwhile, it is dropped.
    made.add(name)
    await admin.query(`create database ${name} ${template === null ? '' : `template ${template}`}`)
    return urlOf(serverUrl, name)
  }
  const drop = async (name: string): Promise<void> => {
    await admin.query(`drop database if exists ${name} with (force)`)
    made.delete(name)
  }
  const shownNow = await admin.query<{ name: string; value: string }>(
    'select name, current_setting(name) as value from pg_settings where name = any($1) order by array_position($1, name)',
    [shown],
  )
  const { rows } = await admin.query<{ server_version: string }>('show server_version')
  return {
    version: `PostgreSQL ${rows[0]!.server_version.split(' ')[0]}`,
    settings: Object.fromEntries(shownNow.rows.map(({ name, value }) => [name, value])),
    async database(key, make) {
      if (!templates.has(key)) {
        const name = `${prefix}_template_${templates.size}`
        try {
          const url = await create(name, null)
          await observe(url)
          await make(url)
        } catch (error) {
          await drop(name)
          throw error
        }
        templates.set(key, name)
      }
      runs += 1
      const name = `${prefix}_run_${runs}`
      const url = await create(name, templates.get(key)!)
      return openDatabase({ url, isLocal: isEmbedded, drop: () => drop(name) })
    },
    async [Symbol.asyncDispose]() {
      for (const name of made) await drop(name)
      await close()
    },
  }
}

/** Where the server does not load it, statements are not counted. */
async function observe(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('create extension if not exists pg_stat_statements').catch(() => {})
  await client.end()
}

function urlOf(serverUrl: string, database: string): string {
  const url = new URL(serverUrl)
  url.pathname = database
  return url.href
}
