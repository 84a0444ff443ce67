import { unreachable } from '../core/unreachable.ts'
import { literal, type Names } from './names.ts'

/** When a publisher sends NOTIFY: only when somebody sleeps, always, or never (subscribers poll). */
export type Wake = 'quiet' | 'always' | 'poll'

/** With one session for everybody (PGlite) locks tell nothing of sleepers: there it is no use being quiet. */
export function heardWake(wake: Wake, { singleSession }: { readonly singleSession: boolean }): Wake {
  return wake === 'quiet' && singleSession ? 'always' : wake
}

/**
 * The two advisory locks of a queue. P: "a publisher is between its statement and its commit". F: "somebody sleeps".
 * `queue` is an SQL expression. A collision with a lock of the application only adds a needless notification.
 */
export function publishersLock(names: Names, queue: string): string {
  return lockOf(`${literal(lockNames(names, '')[0])} || ${queue}`)
}

export function sleepersLock(names: Names, queue: string): string {
  return lockOf(`${literal(lockNames(names, '')[1])} || ${queue}`)
}

/** What P and F of a queue are called: values for a statement that is sent for each message. To put them together there took the server 10 µs. */
export function lockNames({ channel }: Pick<Names, 'channel'>, queue: string): readonly [string, string] {
  return [`${channel} publishers ${queue}`, `${channel} sleepers ${queue}`]
}

function lockOf(name: string): string {
  return `hashtextextended(${name}, 0)`
}

/**
 * The end of a publishing statement: a common table expression `woken`, made of the rows of `inserted`, that notifies
 * subscribers when the transaction commits. NOTIFY takes a lock of the whole database at commit (64 committers: 2,100
 * commits a second with it, 8,000 without), so a quiet publisher sends it only when somebody sleeps:
 *
 * 1. take P shared until commit. Refused: a sleeper is checking this very moment, so notify.
 * 2. try F exclusively and let go. Got it: nobody sleeps, stay quiet. A sleeper that lies down after this takes F first, then
 *    waits for P, so it cannot miss our commit. Refused: somebody sleeps, so notify.
 *
 * CASE fixes the order; the scalar subquery is evaluated once, whatever the number of rows. Rows due within ten seconds
 * are announced too: a sleeper polls every five at most and sets its alarm by what it sees, so a later one is
 * found in time without a notification (`isNow`: none is due later). A half-full notification queue (a stuck listener) silences us: when it is full,
 * COMMIT fails, and a publisher must not fail because a listener is stuck.
 */
export function wakeClause(
  names: Names,
  wake: Wake,
  { queue, isNow }: { readonly queue: string; readonly isNow: boolean },
): string {
  const rows = isNow ? 'inserted' : `inserted where ${isSoon}`
  return wokenBy(names, wake, { queue, from: `(select 1 from ${rows} limit 1) as one` })
}

/** What is known of the row: its queue, the names of P and F (parameters, all of them), and whether it is due at once. */
interface WokenRow {
  readonly queue: string
  readonly locks: readonly [string, string]
  readonly isNow: boolean
}

/**
 * The same for the one row of an `insert … returning`, as one of the columns that it returns: true when it notified. Without common table expressions: with them
 * the statement took the server almost twice as long.
 */
export function wakeOfRow(names: Names, wake: Wake, { queue, locks, isNow }: WokenRow): string {
  if (wake === 'poll') return 'false'
  const [publishers, sleepers] = locks.map(lockOf) as [string, string]
  const unlessQuiet = `
         when case when pg_try_advisory_xact_lock_shared(${publishers}) then pg_try_advisory_lock(${sleepers}) end
         then not pg_advisory_unlock(${sleepers})`
  const due = isNow ? '' : `(${isSoon}) and `
  return `case${wake === 'quiet' ? unlessQuiet : ''}
         when ${due}${hasRoom} then ${notify(names, queue)} is not null
       end`
}

/** The same for rows of any number of queues, which `inserted` names: each of them is asked for once. */
export function wakeQueuesClause(names: Names, wake: Wake): string {
  return wokenBy(names, wake, {
    queue: 'q.queue',
    from: `(select distinct queue from inserted where ${isSoon}) as q`,
  })
}

const isSoon = `due_at is null or due_at < statement_timestamp() + interval '10 seconds'`

/** A row for each queue that is to be told, and the SQL expression of its name. */
interface Announced {
  readonly queue: string
  readonly from: string
}

function wokenBy(names: Names, wake: Wake, announced: Announced): string {
  const { queue } = announced
  switch (wake) {
    case 'quiet':
      return woken(
        names,
        announced,
        `
     and not (select ${isQuiet(names, queue)})`,
      )
    case 'always':
      return woken(names, announced, '')
    case 'poll':
      return `
, woken as (select 1 where false)`
    default:
      return unreachable(wake)
  }
}

function woken(names: Names, { queue, from }: Announced, unlessQuiet: string): string {
  return `
, woken as materialized (
  select ${notify(names, queue)}
    from ${from}
   where ${hasRoom}${unlessQuiet}
)`
}

/** Takes P, and finds that nobody sleeps. */
function isQuiet(names: Names, queue: string): string {
  return `case
                when not pg_try_advisory_xact_lock_shared(${publishersLock(names, queue)}) then false
                when pg_try_advisory_lock(${sleepersLock(names, queue)})
                then pg_advisory_unlock(${sleepersLock(names, queue)})
                else false
              end`
}

const hasRoom = 'pg_notification_queue_usage() < 0.5'

function notify(names: Names, queue: string): string {
  return `pg_notify(${literal(names.channel)}, ${queue})`
}
