import pg from 'pg'
import { createOutbox, type Outbox } from 'postbox'
import type { Measurement } from './measurement.ts'
import type { WalOfType } from './normalise.ts'
import { beginCounting, endCounting } from './probe.ts'
import { type Bench, queue, type Scenario } from './scenarios.ts'
import type { CountingServer } from './server.ts'

export interface Measured extends Measurement {
  readonly wal: readonly WalOfType[]
}

/** Runs a scenario on tables of its own and counts what it cost. */
export async function measure(server: CountingServer, scenario: Scenario, schema: string): Promise<Measured> {
  await withBench(server, { schema, scenario }, async (bench) => {
    await bench.outbox.migrate()
    await scenario.prepare?.(bench)
  })
  const listener = await listen(server, schema, scenario)
  const start = await beginCounting(server.observer, schema)
  await withBench(server, { schema, scenario }, scenario.run)
  const { totals, wal } = await endCounting(server.observer, schema, start)
  const notifications = await listener.heard()
  await assertNothingLeft(server, schema, scenario)
  const { workload, messages } = scenario
  return { workload, messages, totals: { ...totals, notifications }, wal }
}

/** Connections that are closed before anybody looks at the counters. */
async function withBench(
  server: CountingServer,
  { schema, scenario: { isOrdered } }: { readonly schema: string; readonly scenario: Scenario },
  work: (bench: Bench) => Promise<void>,
): Promise<void> {
  const queues = isOrdered ? { queues: { [queue]: { order: 'key' } } as const } : {}
  const pool = new pg.Pool({ connectionString: server.workUrl, max: 4 })
  try {
    const outbox = createOutbox({ database: pool, schema, logger: false, ...queues })
    await work({ pool, outbox: outbox as Outbox })
  } finally {
    await pool.end()
  }
}

/** A subscriber's listening connection, as far as publishers can see it: LISTEN and, when it sleeps, the sleepers' lock. */
async function listen(
  server: CountingServer,
  schema: string,
  { hasSleeper }: Scenario,
): Promise<{ heard(): Promise<number> }> {
  const channel = `postbox:${schema}.outbox`
  const client = await server.connect()
  let notifications = 0
  client.on('notification', () => {
    notifications += 1
  })
  await client.query(`listen "${channel}"`)
  if (hasSleeper) {
    const lock = 'select pg_advisory_lock_shared(hashtextextended($1, 0))'
    await client.query(lock, [`${channel} sleepers ${queue}`])
  }
  return {
    async heard() {
      // Notifications of transactions that have ended are sent before the answer to this.
      await client.query(`unlisten "${channel}"`)
      return notifications
    },
  }
}

async function assertNothingLeft(
  server: CountingServer,
  schema: string,
  { workload, messages, left = workload === 'consume' ? 0 : messages }: Scenario,
): Promise<void> {
  const text = `select count(*)::int as left from ${schema}.outbox`
  const { rows } = await server.observer.query<{ left: number }>(text)
  if (rows[0]?.left === left) return
  throw new Error(`${rows[0]?.left} messages are in ${schema}, expected ${left}`)
}
