import type { Names } from './names.ts'
import { isInOrder, pauseText } from './pause-state.ts'
import { plannedAnew } from './planned-anew.ts'
import type { Statement } from './statement.ts'

export interface ClaimInput {
  /** One for the whole claim: it proves who may settle these rows. */
  readonly token: string
  readonly queues: readonly ClaimedQueue[]
  /** Messages of a newer generation are left where they are; null: none is. */
  readonly generation?: number | null
}

/** So many scheduled messages are looked through for one that is not too new: a claim must not read a whole lane of them. */
export const scheduledLooks = 100

/** The seq of a suspect (row `m`): a delivery of it ended without an outcome, since each that failed counts as an attempt. Null: it is none. */
export const suspectSeq = 'case when m.deliveries > m.attempts then m.seq end'

/** What a claim tells of a message `c`, in the order of MessageRow. One that was for later when its queue gave its order up never joined its key, and has it all the same. */
export const messageColumns = `       c.id::text,
       c.seq::text,
       coalesce(c.key, c.later_key),
       c.fired_timer_id,
       encode(c.body, 'base64'),
       c.headers::text,
       c.attempts::text,
       c.deliveries::text,
       c.suspect::text,
       (extract(epoch from c.created_at) * 1000)::text,
       (extract(epoch from c.first_attempt_at) * 1000)::text,
       c.generation::text,
       (extract(epoch from c.due_at) * 1000)::text`

/** The deliveries of a row `m` that is claimed. */
const countedByClaim = 'm.deliveries + case when m.deliveries > m.attempts then 0 else 1 end'

/** What to take of one queue, and from where. */
export interface ClaimedQueue {
  readonly queue: string
  /** How many rows at most. */
  readonly room: number
  readonly leaseMs: number
  /** Fresh rows above this seq. */
  readonly after: string
  /** Due rows from this time on, in milliseconds since 1970; null: all of them. */
  readonly dueFromMs: number | null
  /** Tell the lowest seq above `after`, too. */
  readonly sweep: boolean
}

/** A row of `kind` 'queue' for each queue that was asked for, and one of `kind` 'message' for each message. */
export type ClaimRow = QueueRow | MessageRow

export interface QueueRow {
  readonly kind: 'queue'
  readonly queue: string
  /** This statement's own xid and snapshot. */
  readonly own: string
  readonly snapshot: string
  /** The last seq that was given out. */
  readonly top: string
  /**
   * How many milliseconds from now the next message of the queue is due; null: none waits. Where the next hundred are all of a newer
   * generation: when the last of those is, to look again.
   */
  readonly nextdue: string | null
  /** The lowest fresh seq above `after` of a generation that may be claimed, leased or not; null: none, or not asked for. */
  readonly lowest: string | null
  /** The database's clock, in milliseconds since 1970. */
  readonly now: string
  /** How it stands with the queue, see `pauseFrom`: of one that is paused nothing is claimed, and nothing is due. */
  readonly pause: string | null
}

export interface MessageRow {
  readonly kind: 'message'
  readonly queue: string
  readonly id: string
  readonly seq: string
  readonly key: string | null
  /** The timer that fired; null: it is none. */
  readonly timer: string | null
  readonly body: string
  readonly headers: string | null
  readonly attempts: string
  /** As they are stored now: of a suspect, without this one. */
  readonly deliveries: string
  /** 'true': an earlier delivery ended without an outcome. This one is not counted yet: see `countDelivery`. */
  readonly suspect: string
  readonly created: string
  /** When its first run failed, in milliseconds since 1970; null: none has. */
  readonly first: string | null
  readonly generation: string | null
  /** When it was due, in milliseconds since 1970; null: it was fresh. */
  readonly due: string | null
}

/**
 * Takes rows of any number of queues with one statement: nobody else may settle them until their lease ends. What was promised for a
 * time (the due lane) goes before what is fresh; rows that others are claiming are stepped over; a lease that has ended counts as none.
 * Deliveries are counted here, by the claim itself: a message that kills its process must still use one up. But not those of a *suspect*,
 * whose last delivery ended without an outcome: it is counted when it is run, alone, so that nobody is blamed for what a neighbour does
 * (docs/decisions/0036). A timer gives its name up, so that anybody may arm the next one while it runs, its own handler included
 * (docs/decisions/0019).
 *
 * - Fresh rows are found by a row comparison, which only the index (queue, seq) can serve: with `queue = …` the planner may walk the
 *   primary key through other queues' rows (393 ms against 0.7, for 500 rows behind a million). Due rows by equality: below
 *   PostgreSQL 18 a row comparison does not stop at its upper end (35 ms against 0.01, before a million scheduled rows).
 * - `once` is one row of which the planner expects a thousand: it dreads a sort of the product, and takes the index in its order. Without it, a table
 *   that was never analysed, or vacuumed while it was nearly empty, is believed to hold a row or two, and is read and sorted as a
 *   whole (all of 100,000 rows, for a claim of 100).
 * - Each lane has a limit of its own that the planner can see, around the one it cannot (`room`): without it the cost is that of a tenth of the
 *   table, and the statement is compiled (jit) for 130 ms.
 * - What was a suspect is told by `picked`: what a row was before the update, the update cannot return below PostgreSQL 18.
 * - No index names a lease column, so the update stays on its page (HOT), but for a timer's. By ctid: no second look-up.
 * - With a `generation`, newer rows are passed over in both lanes, and do not count as `lowest`: the floor of the sweeps passes them, too (100,000
 *   of them: 1 sweep in 10 reads them, not each). Without, the text has no word of it (docs/decisions/0033).
 * - What is paused is asked of the queues here, and nowhere else: a pause binds every claim that begins after its commit (docs/decisions/0035). Its room is none.
 * - The same of a queue that somebody has written down as one in the order of its keys: whoever sends this has it without, and would break the order.
 * - A lost claim costs a lease, so it need not wait for the disk: synchronous_commit is off for this statement's transaction.
 *
 * Everything comes back as text, messages in physical order.
 */
export function claimMessages(names: Names, input: ClaimInput): Statement<ClaimRow, ClaimInput> {
  const { token, queues, generation = null } = input
  const isOurs = generation === null ? '' : 'and (m.generation is null or m.generation <= $5::bigint)'
  const begin = `
with quick as materialized (
  select set_config('synchronous_commit', 'off', true)`
  const rest = `
), wanted as materialized (
  select w.queue, w."leaseMs", w.after, w.sweep,
         case when ${isHeld} then 0 else w.room end as room,
         ${isHeld} as paused,
         coalesce(to_timestamp(w."dueFromMs" / 1000), '-infinity') as due_from,
         ${pauseText('q', isInOrder('q'))} as pause
    from quick,
         jsonb_to_recordset($1::text::jsonb)
      as w(queue text, room int, "leaseMs" float8, after bigint, "dueFromMs" float8, sweep boolean)
    left join ${names.queues} as q
      on q.name = w.queue
   limit $2::int
), picked as materialized (
  select p.spot, p.suspect
    from wanted as w
   cross join lateral (
     select u.spot, u.suspect
       from ((select d.spot, d.suspect
                from (select m.ctid as spot, ${suspectSeq} as suspect
                        from ${names.messages} as m, generate_series(w.room, w.room) as once
                       where m.queue = w.queue
                         and m.due_at >= w.due_from
                         and m.due_at <= now()
                         and (m.lease_token is null or m.leased_until < now())${line(isOurs, 25)}
                       order by m.due_at, m.seq
                       limit w.room
                         for update of m skip locked) as d
               limit $3::int)
             union all
             (select f.spot, f.suspect
                from (select m.ctid as spot, ${suspectSeq} as suspect
                        from ${names.messages} as m, generate_series(w.room, w.room) as once
                       where (m.queue, m.seq) > (w.queue, w.after)
                         and (m.queue, m.seq) <= (w.queue, 9223372036854775807)
                         and m.due_at is null
                         and (m.lease_token is null or m.leased_until < now())${line(isOurs, 25)}
                       order by m.queue, m.seq
                       limit w.room
                         for update of m skip locked) as f
               limit $3::int)) as u
      limit w.room) as p
), ${leased(names, 'picked')}
select 'queue' as kind,
       w.queue,
       pg_current_xact_id()::text as own,
       pg_current_snapshot()::text as snapshot,
       (select case when s.is_called then s.last_value else s.last_value - 1 end
          from ${names.sequence} as s)::text as top,
       case when not w.paused then
         ${nextDue(names, generation)}
       end as nextdue,
       case when w.sweep then
         (select m.seq::text
            from ${names.messages} as m, generate_series(w.room, w.room) as once
           where (m.queue, m.seq) > (w.queue, w.after)
             and (m.queue, m.seq) <= (w.queue, 9223372036854775807)
             and m.due_at is null${line(isOurs, 13)}
           order by m.queue, m.seq
           limit 1)
       end as lowest,
       (extract(epoch from now()) * 1000)::text as now,
       w.pause,
       null as id, null as seq, null as key, null as timer, null as body, null as headers, null as attempts,
       null as deliveries, null as suspect, null as created, null as first, null as generation, null as due
  from wanted as w
 union all
select 'message', c.queue, null, null, null, null, null, null, null,
${messageColumns}
  from claimed as c`
  return {
    name: 'claim_messages',
    text: begin + rest,
    keptText: `${begin}\n   where ${plannedAnew('$2::int')}${rest}`,
    values: [
      JSON.stringify(queues),
      queues.length,
      queues.reduce((most, { room }) => Math.max(most, room), 0),
      token,
      ...(generation === null ? [] : [generation]),
    ],
    input,
  }
}

/** A common table expression, `claimed`: the rows of `wanted` queues at the spots of `chosen` are his who sends this, until his lease ends. */
export function leased({ messages }: Names, chosen: string): string {
  return `claimed as (
  update ${messages} as m
     set lease_token = $4::uuid,
         leased_until = now() + make_interval(secs => w."leaseMs" / 1000),
         deliveries = ${countedByClaim},
         timer_id = null,
         fired_timer_id = coalesce(m.timer_id, m.fired_timer_id)
    from wanted as w
   where m.ctid = any(array(select spot from ${chosen}))
     and m.queue = w.queue
  returning m.*, m.seq = any(array(select suspect from ${chosen} where suspect is not null)) as suspect
)`
}

/** Nothing of the queue `q` may be claimed. It may have no row. */
export const isHeld = `coalesce(q.paused_at is not null or ${isInOrder('q')}, false)`

function line(clause: string, indent: number): string {
  return clause === '' ? '' : `\n${' '.repeat(indent)}${clause}`
}

/** When the next message of queue `w` is due: an expression, in milliseconds from now. With a generation, that is $5. */
export function nextDue(names: Names, generation: number | null): string {
  return generation === null ? nextDueOfAll(names) : nextDueOfOurs(names)
}

function nextDueOfAll(names: Names): string {
  return `(select (extract(epoch from m.due_at - now()) * 1000)::text
          from ${names.messages} as m, generate_series(w.room, w.room) as once
         where m.queue = w.queue
           and m.due_at > now()
           and m.due_at < 'infinity'
         order by m.due_at, m.seq
         limit 1)`
}

function nextDueOfOurs(names: Names): string {
  return `(select (extract(epoch from coalesce(min(s.due_at) filter (where s.ours),
                                             case when count(*) = ${scheduledLooks} then max(s.due_at) end) - now()) * 1000)::text
          from (select m.due_at, (m.generation is null or m.generation <= $5::bigint) as ours
                  from ${names.messages} as m, generate_series(w.room, w.room) as once
                 where m.queue = w.queue
                   and m.due_at > now()
                   and m.due_at < 'infinity'
                 order by m.due_at, m.seq
                 limit ${scheduledLooks}) as s)`
}
