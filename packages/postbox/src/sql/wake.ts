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
  return `hashtextextended(${literal(`${names.channel} publishers `)} || ${queue}, 0)`
}

export function sleepersLock(names: Names, queue: string): string {
  return `hashtextextended(${literal(`${names.channel} sleepers `)} || ${queue}, 0)`
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
 * found in time without a notification. A half-full notification queue (a stuck listener) silences us: when it is full,
 * COMMIT fails, and a publisher must not fail because a listener is stuck.
 */
export function wakeClause(names: Names, wake: Wake, queue: string): string {
  return wokenBy(names, wake, { queue, from: `(select 1 from inserted where ${isSoon} limit 1) as one` })
}

/**
 * The same for the one row of an `insert … returning`, as a number among what it returns. Without common table expressions: with them
 * the statement took the server almost twice as long. `isNow`: it is known to be due at once.
 */
export function wakeOfRow(
  names: Names,
  wake: Wake,
  { queue, isNow }: { readonly queue: string; readonly isNow: boolean },
): string {
  if (wake === 'poll') return '0'
  const due = isNow ? '' : `(${isSoon}) and `
  return `case${wake === 'quiet' ? `\n         when ${isQuiet(names, queue)} then 0` : ''}
         when ${due}${hasRoom} then (${notify(names, queue)}::text is not null)::int
         else 0
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
