import type pg from 'pg'
import type { Body, Driver, DriverInput } from './driver.ts'
import { inTransaction, Pool, peer } from './peer.ts'

interface GraphileWorker {
  runMigrations(options: { readonly connectionString: string }): Promise<void>
  run(
    options: Readonly<Record<string, unknown>>,
    tasks: Readonly<Record<string, (payload: unknown) => unknown>>,
  ): Promise<{ stop(): Promise<void> }>
  readonly WorkerPreset: unknown
  readonly Logger: new (factory: () => () => void) => unknown
}

interface Settings extends Readonly<Record<string, unknown>> {
  /** Messages have one of so many, and those of one are run one at a time. */
  readonly keys?: number
  readonly queues?: number
}

/** Adding is done by the SQL functions that its documentation names for transactions. */
const addMany = `
  select count(*)
    from graphile_worker.add_jobs(array(select json_populate_recordset(null::graphile_worker.job_spec, $1::json)))`

export function openGraphileWorker({ url, settings }: DriverInput): Driver {
  const worker: GraphileWorker = peer('graphile-worker')
  const { keys, queues = 1, ...options } = settings as Settings
  const taskOf = (n: number): string => `bench-${n % queues}`
  const logger = new worker.Logger(() => () => {})
  let pool: pg.Pool | undefined
  let runner: { stop(): Promise<void> } | undefined
  const add = async (jobs: readonly object[]): Promise<void> => {
    await inTransaction(pool!, (client) => client.query(addMany, [JSON.stringify(jobs)]))
  }
  const jobOf = (payload: Body): object => ({
    identifier: taskOf(payload.n),
    payload,
    ...(keys === undefined ? {} : { queue_name: `key-${payload.n % keys}` }),
  })
  return {
    setup: () => worker.runMigrations({ connectionString: url }),
    async openPublisher() {
      pool = new Pool({ connectionString: url, max: 4 })
    },
    publishMany: (bodies) => add(bodies.map(jobOf)),
    async publishOne(client, body) {
      await client.query('select graphile_worker.add_job($1, $2::json)', [
        taskOf(body.n),
        JSON.stringify(body),
      ])
    },
    publishTimers: (bodies) =>
      add(bodies.map((body) => ({ ...jobOf(body), run_at: new Date(body.at!).toISOString() }))),
    async openConsumer() {},
    async consume(handler) {
      const preset = {
        extends: [worker.WorkerPreset],
        worker: { connectionString: url, logger, ...options },
      }
      const run = (payload: unknown): unknown => handler(payload as Body)
      const tasks = Object.fromEntries(Array.from({ length: queues }, (_, n) => [taskOf(n), run]))
      runner = await worker.run({ preset, noHandleSignals: true }, tasks)
    },
    async [Symbol.asyncDispose]() {
      await runner?.stop()
      await pool?.end()
    },
  }
}
