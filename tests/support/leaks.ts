// What a test may not leave behind: connections, open transactions, leased rows, handles. A snapshot before the test
// is compared with one after it, so a test answers for what it did, not for its predecessors.
import { setTimeout as wait } from 'node:timers/promises'
import type pg from 'pg'
import { runningTimers } from './timers.ts'

export interface Snapshot {
  readonly sessions: readonly Session[]
  /** One sentence each. */
  readonly leases: readonly string[]
  readonly handles: ReadonlyMap<string, number>
  /** Where each was set. */
  readonly timers: readonly string[]
}

interface Session {
  readonly pid: number
  readonly state: string
  readonly query: string
  readonly is_shared: boolean
  /** When its transaction began, if it is one that nobody is working in. */
  readonly idle_since: string | null
}

/** What is looked at. */
export interface Surveyed {
  readonly guard: pg.Client
  readonly schema: string
  readonly applicationName: string
}

// Handles that keep the process running, as Node counts them; unreferenced ones are not in its list. Connections to
// anything, listening servers, child processes, worker threads and file watchers. Not counted: file operations and
// immediates, which end by themselves; pipes, of which the test runner has its own; timers, see timers.ts.
const countedHandles = [
  'TCPSocketWrap',
  'TCPServerWrap',
  'PipeServerWrap',
  'UDPWrap',
  'ProcessWrap',
  'Worker',
  'FSEventWrap',
  'StatWatcher',
] as const

/**
 * Every table of the schema with a lease_token is taken for an outbox table, whatever its name. In one statement: each test is surveyed twice, and asking table by
 * table took more than the tests did where a file has a dozen outboxes. A transaction left open may hold a table itself; that must become a failure, not a hanging run.
 */
const leasesOf = `
  create or replace function pg_temp.leases_of(of_schema text) returns setof text
    language plpgsql set lock_timeout = '1s' as
  $$
  declare
    of_table text;
  begin
    for of_table in
      select format('%I.%I', n.nspname, c.relname)
        from pg_class c
        join pg_namespace n on n.oid = c.relnamespace
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'lease_token' and not a.attisdropped
       where n.nspname = of_schema
         and c.relkind = 'r'
       order by 1
    loop
      begin
        return query execute format(
          $query$
            select format('a leased row in %%s: queue "%%s", seq %%s, token %%s', %L,
                          to_jsonb(t) ->> 'queue', to_jsonb(t) ->> 'seq', lease_token)
              from %s as t
             where lease_token is not null
             order by to_jsonb(t) ->> 'seq'
          $query$, of_table, of_table);
      exception when lock_not_available then
        return next format('a lock on %s, which hides whether it has leased rows', of_table);
      end;
    end loop;
  end
  $$
`

/** Once, before the first survey. */
export async function prepareSurveys(guard: pg.Client): Promise<void> {
  await guard.query(leasesOf)
}

/** The name of the sessions that a file shares between its tests; see `useDatabase`. */
export function sharedName(applicationName: string): string {
  return `${applicationName} *`
}

export async function survey(surveyed: Surveyed): Promise<Snapshot> {
  // Handles first: what this function awaits must not be in the count.
  const handles = countHandles()
  const timers = runningTimers()
  const { guard, applicationName, schema } = surveyed
  const values = [applicationName, sharedName(applicationName), schema]
  const { rows } = await guard.query<Pick<Snapshot, 'sessions' | 'leases'>>({ ...surveying, values })
  const { sessions, leases } = rows[0] ?? { sessions: [], leases: [] }
  return { sessions, leases, handles, timers }
}

// By name, so that it is planned once: there are thousands of tests.
const surveying = {
  name: 'survey',
  text: `
    select (
             select coalesce(json_agg(s order by s.pid), '[]')
               from (
                      select pid,
                             coalesce(state, 'starting') as state,
                             query,
                             application_name = $2 as is_shared,
                             case when state like 'idle in transaction%' then xact_start::text end as idle_since
                        from pg_stat_activity
                       where application_name in ($1, $2)
                    ) as s
           ) as sessions,
           array(select pg_temp.leases_of($3)) as leases
  `,
}

/** The same before the next test of the same describe: nothing but that test's own hooks has run since, so the server need not be asked again. */
export function surveyAgain({ sessions, leases }: Snapshot): Snapshot {
  return { sessions, leases, handles: countHandles(), timers: runningTimers() }
}

export interface LeakCheck {
  readonly before: Snapshot
  readonly surveyed: Surveyed
  readonly test: string
  /** Things the support handed out that are still open although no session shows it. */
  readonly stillOpen: () => readonly string[]
  /** How long to wait for backends and sockets on their way out. */
  readonly withinMs: number
}

/** Throws if something is left, naming it and the test; else says what there is. */
export async function refuseLeaks(check: LeakCheck): Promise<Snapshot> {
  const { before, surveyed, test, stillOpen, withinMs } = check
  const deadline = performance.now() + withinMs
  for (;;) {
    const after = await survey(surveyed)
    const left = [...stillOpen(), ...compare(before, after)]
    if (left.length === 0) return after
    if (performance.now() > deadline) {
      throw new Error(`"${test}" left behind:\n${left.map((one) => `- ${one}`).join('\n')}`)
    }
    await wait(2)
  }
}

/** Transactions nobody works in hold locks that the next test, or the drop of the schema, would wait for. */
export async function endStuckSessions({ guard, applicationName }: Surveyed): Promise<void> {
  await guard.query(
    `
      select pg_terminate_backend(pid)
        from pg_stat_activity
       where application_name in ($1, $2)
         and state like 'idle in transaction%'
    `,
    [applicationName, sharedName(applicationName)],
  )
}

function compare(before: Snapshot, after: Snapshot): string[] {
  return [
    ...leftSessions(before, after),
    ...leftTransactions(before, after),
    ...after.leases.filter((lease) => !before.leases.includes(lease)),
    ...leftHandles(before, after),
    ...leftTimers(before, after),
  ]
}

function leftSessions(before: Snapshot, after: Snapshot): string[] {
  const known = new Set(before.sessions.map((session) => session.pid))
  return after.sessions
    .filter((session) => !session.is_shared && !known.has(session.pid))
    .map(({ pid, state, query }) => `a connection (pid ${pid}, ${state}), last statement: ${oneLine(query)}`)
}

function leftTransactions(before: Snapshot, after: Snapshot): string[] {
  const key = (session: Session) => `${session.pid} ${session.idle_since}`
  const known = new Set(before.sessions.map(key))
  return after.sessions
    .filter((session) => session.idle_since !== null && !known.has(key(session)))
    .map(
      ({ pid, state, query }) =>
        `an open transaction (pid ${pid}, ${state}), last statement: ${oneLine(query)}`,
    )
}

function leftHandles(before: Snapshot, after: Snapshot): string[] {
  return countedHandles.flatMap((name) => {
    // A pool shared by the tests of a file connects when it is first used, which may be inside a test.
    const lateShared = name === 'TCPSocketWrap' ? newShared(before, after) : 0
    const had = before.handles.get(name) ?? 0
    const has = after.handles.get(name) ?? 0
    return has > had + lateShared ? [`a handle: ${name}, ${had} before the test, ${has} after it`] : []
  })
}

/** By number, not by identity: what is shared by the tests of a file may set its timer again and again. */
function leftTimers(before: Snapshot, after: Snapshot): string[] {
  const more = after.timers.length - before.timers.length
  return more > 0 ? after.timers.slice(-more).map((place) => `a timer, set at ${place}`) : []
}

/** By pid, not by number: one that was on its way out before the test is gone after it, and its socket was gone before. */
function newShared(before: Snapshot, after: Snapshot): number {
  const known = new Set(before.sessions.map((session) => session.pid))
  return after.sessions.filter((session) => session.is_shared && !known.has(session.pid)).length
}

function countHandles(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const name of process.getActiveResourcesInfo()) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

function oneLine(query: string): string {
  return query.replaceAll(/\s+/g, ' ').trim().slice(0, 120) || 'none'
}
