// The tables, the sessions and the observer of the tester: made once, and emptied for each order.
import type pg from 'pg'
import type { Names } from '../../packages/postbox/src/sql/names.ts'
import type { TestDatabase } from '../support/database.ts'
import { prepareAll } from '../support/prepare-all.ts'
import { makeTables } from '../support/settle-bench.ts'
import { createSession, type DrivenSession, type World } from './session.ts'
import type { Given, Scenario, Snapshot } from './terms.ts'

/** Who looks, an hour after the last step, for what is left. */
export const closer = 'F'

export interface Bench {
  readonly world: World
  readonly sessions: ReadonlyMap<string, DrivenSession>
  /** Empties the tables, and puts in what is given. Nobody may be in a transaction. */
  reset(scenario: Pick<Scenario, 'given' | 'lanes'>): Promise<void>
  look(): Promise<Snapshot>
  /** By the pid of who waits: the pids of those whose locks he waits for. */
  blockers(pids: readonly number[]): Promise<ReadonlyMap<number, readonly number[]>>
}

/** The last one comes when all is over. */
const letters = ['A', 'B', 'C', 'T', closer]

/** To be called in a beforeAll. */
export async function openBench(database: TestDatabase): Promise<Bench> {
  const names = await makeTables(database.pool({ max: 1 }), { schema: database.schema, table: 'outbox' })
  await database.query(worldSql(database.schema))
  const world: World = { hours: 0, rewrite: ({ text }) => text, lanes: {}, hands: new Map() }
  const observer = await database.client()
  const sessions = new Map<string, DrivenSession>()
  for (const letter of letters) {
    const client = await database.client()
    const pid = await prepared(client, database.schema)
    prepareAll(client)
    sessions.set(letter, createSession({ client, pid, letter, names, world }))
  }
  let resets = 0
  return {
    world,
    sessions,
    async reset({ given, lanes = {} }) {
      for (const session of sessions.values()) session.forget()
      Object.assign(world, { hours: 0, lanes })
      world.hands.clear()
      // Dead rows slow everything down after a while; a truncate each time would, too.
      const empty = resets++ % 100 === 0 ? truncating(names) : deleting(names)
      await observer.query([...empty, ...given.map((one, nth) => givenSql(names, one, nth + 1))].join(';'))
    },
    look: () => look(observer, names, world.hours),
    blockers: (pids) => blockersOf(observer, pids),
  }
}

/**
 * Time, and what a handler's work leaves. These functions stand before those of Postgres for the sessions: statements are sent as they
 * are, and an hour passes without a row being touched.
 */
function worldSql(schema: string): string {
  const shifted = (name: string): string =>
    `create function ${schema}.${name}() returns timestamptz stable language sql as
     'select pg_catalog.${name}() + pg_catalog.make_interval(hours => pg_catalog.current_setting(''interleaving.hours'')::int)'`
  const effects = `create table ${schema}.effects (message uuid not null, worker text not null)`
  return [shifted('now'), shifted('statement_timestamp'), effects].join(';')
}

async function prepared(client: pg.Client, schema: string): Promise<number> {
  // A deadlock is looked for after a moment and not after a second.
  await client.query(
    `set search_path = ${schema}, pg_catalog; set interleaving.hours = 0; set deadlock_timeout = '5ms'; set synchronous_commit = off`,
  )
  const { rows } = await client.query('select pg_backend_pid() as pid')
  return rows[0].pid
}

// Follow-ons and replayed messages come after what is given.
const restart = (names: Names): string => `select setval('${names.sequence}', 100)`

function truncating(names: Names): readonly string[] {
  return [`truncate ${names.messages}, ${names.dead}, ${names.queues}, effects`, restart(names)]
}

function deleting(names: Names): readonly string[] {
  return [
    ...[names.messages, names.dead, names.queues, 'effects'].map((table) => `delete from ${table}`),
    restart(names),
  ]
}

function givenSql(names: Names, given: Given, seq: number): string {
  const { place, id, timer, isDue, key, isJoining, silent = 0 } = given
  const name = timer === null ? 'null' : `'${timer}'`
  const keys = key === undefined ? 'null, null' : isJoining ? `null, '${key}'` : `'${key}', null`
  switch (place) {
    case 'live':
      return `insert into ${names.messages} (seq, id, queue, body, timer_id, due_at, deliveries, key, later_key) overriding system value
              values (${seq}, '${id}', 'orders', '{}', ${name}, ${isDue ? 'now()' : 'null'}, ${silent}, ${keys})`
    case 'dead':
      return `insert into ${names.dead} (original_seq, id, queue, body, timer_id, attempts, deliveries, created_at, failure_reason)
              values (${seq}, '${id}', 'orders', '{}', ${name}, 1, 1, now(), 'rejected')`
    case 'quarantined':
      return `insert into ${names.messages} (seq, id, queue, body, fired_timer_id, attempts, deliveries, due_at, failed_at, failure_reason)
              overriding system value
              values (${seq}, '${id}', 'orders', '{}', ${name}, 1, 1, 'infinity', now(), 'rejected')`
  }
}

async function look(observer: pg.Client, names: Names, hours: number): Promise<Snapshot> {
  const now = 'now() + make_interval(hours => $1::int)'
  const cycles = `coalesce(jsonb_array_length(failure_history -> 'cycles'), 0)`
  const text = `select (select json_agg(json_build_object('seq', seq::text, 'id', id, 'timer', timer_id, 'fired', fired_timer_id,
                      'token', lease_token, 'isLeaseOver', coalesce(leased_until < ${now}, true),
                      'attempts', attempts, 'deliveries', deliveries, 'isFailed', failed_at is not null, 'cycles', ${cycles},
                      'key', key, 'laterKey', later_key, 'isParked', parked_at is not null,
                      'due', case when due_at is null then 'fresh' when due_at = 'infinity' then 'never'
                                  when due_at <= ${now} then 'due' else 'later' end) order by seq)
               from ${names.messages}) as messages,
            (select json_agg(json_build_object('id', id, 'timer', timer_id, 'attempts', attempts, 'deliveries', deliveries,
                      'cycles', ${cycles}) order by dead_seq)
               from ${names.dead}) as dead,
            (select paused_by from ${names.queues}) as paused,
            (select json_agg(message) from effects) as effects`
  const { rows } = await observer.query({ name: 'look', text, values: [hours] })
  const { messages, dead, effects, paused: pausedBy } = rows[0]
  return { messages: messages ?? [], dead: dead ?? [], effects: effects ?? [], pausedBy }
}

async function blockersOf(
  observer: pg.Client,
  pids: readonly number[],
): Promise<ReadonlyMap<number, readonly number[]>> {
  const text = 'select pid, pg_blocking_pids(pid) as blockers from unnest($1::int[]) as pid'
  const { rows } = await observer.query({ name: 'blockers', text, values: [pids] })
  return new Map(rows.map(({ pid, blockers }) => [pid, blockers]))
}
