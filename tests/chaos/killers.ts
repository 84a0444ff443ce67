// Messages that kill whoever runs them, among others that do not.
import { createOutbox } from 'postbox'
import { expect } from 'vitest'
import type { TestDatabase } from '../support/database.ts'
import { longWaitLimitMs } from '../support/patience.ts'
import { eventually } from '../support/signals.ts'
import type { Child, Programs } from './processes.ts'
import { killingBody, type WorkerOrder } from './protocol.ts'

export interface KillerScene {
  readonly database: TestDatabase
  readonly programs: Programs
}

/** How often each message was begun, and how often that was not ended. */
export interface Life {
  readonly id: string
  readonly begun: number
  readonly interrupted: number
}

export interface Aftermath {
  readonly deaths: number
  readonly killers: readonly Life[]
  readonly neighbours: readonly Life[]
}

/** To be called in a beforeAll: the tables of an outbox, and one in which workers that are mortal record their runs. */
export async function createRunsTable(database: TestDatabase): Promise<void> {
  await createOutbox({ database: database.pool({ max: 1 }), schema: database.schema }).migrate()
  await database.query(
    'create table runs (id uuid not null, worker int not null, has_ended boolean not null default false)',
  )
}

/** Publishes to `orders`, killers at these places among so many others. Returns their ids. */
export async function publishKillers(
  { database }: KillerScene,
  { count, killers }: { readonly count: number; readonly killers: readonly number[] },
): Promise<readonly string[]> {
  await database.query('truncate outbox, outbox_dead, runs')
  const pool = database.pool({ max: 1 })
  const outbox = createOutbox({ database: pool, schema: database.schema })
  const bodies = Array.from({ length: count }, (_, n) => (killers.includes(n) ? killingBody : n))
  const client = await pool.connect()
  await client.query('begin')
  const receipts = await outbox.publishMany(client, 'orders', bodies)
  await client.query('commit')
  client.release()
  await pool.end()
  return receipts.filter((_, n) => killers.includes(n)).map(({ id }) => id)
}

/** Starts one worker after the other, each when the last has died, until nothing is left. Nobody waits for the leases of the dead. */
export async function restartUntilQuiet(
  scene: KillerScene,
  order: Partial<WorkerOrder>,
  mostDeaths: number,
): Promise<number> {
  for (let deaths = 0; ; deaths++) {
    if (deaths > mostDeaths) throw new Error(`${deaths} processes have died`)
    await using worker = startMortal(scene, order)
    const isQuiet = untilQuiet(scene.database, worker)
    if (await isQuiet) return deaths
    expect(await worker.ended).toEqual({ code: null, signal: 'SIGKILL', output: '' })
    await endLeases(scene.database, worker)
  }
}

export function startMortal({ database, programs }: KillerScene, order: Partial<WorkerOrder>): Child {
  const { url, schema } = database
  return programs.worker({ url, schema, isMortal: true, ...order })
}

/** What became of them all, once nothing is left. */
export async function aftermath(
  { database }: KillerScene,
  deaths: number,
  killers: readonly string[],
): Promise<Aftermath> {
  const lives = await database.query<{ id: string; begun: number; interrupted: number }>(
    `select id::text, count(*)::int as begun, (count(*) filter (where not has_ended))::int as interrupted
       from runs group by id`,
  )
  return {
    deaths,
    killers: lives.filter(({ id }) => killers.includes(id)),
    neighbours: lives.filter(({ id }) => !killers.includes(id)),
  }
}

/** True: nothing is left. False: the worker has died. */
async function untilQuiet(database: TestDatabase, worker: Child): Promise<boolean> {
  return eventually(
    async () => {
      if (worker.hasEnded) return { isQuiet: false }
      return (await database.query('select from outbox')).length === 0 && { isQuiet: true }
    },
    { what: 'every message to be gone, or the worker', withinMs: longWaitLimitMs },
  ).then(({ isQuiet }) => isQuiet)
}

async function endLeases(database: TestDatabase, { name }: Child): Promise<void> {
  // A statement that was under way is carried out after the death of who sent it.
  const sessions = () =>
    database.query('select from pg_stat_activity where application_name like $1', [`${name}%`])
  await eventually(async () => (await sessions()).length === 0, { what: 'the last statement to end' })
  await database.query(
    `update outbox set leased_until = now() - interval '1 second' where lease_token is not null`,
  )
}
