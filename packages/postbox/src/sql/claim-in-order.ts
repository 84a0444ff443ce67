// Path 4/7 · claim: the same as claim-messages.ts for queues that are in the order of their keys.
import {
  leased,
  type MessageRow,
  messageColumns,
  nextDue,
  type QueueRow,
  suspectSeq,
} from './claim-messages.ts'
import {
  due,
  fresh,
  hopped,
  hopping,
  inSight,
  isFree,
  mayJoin,
  mostDueLooks,
  mostFresh,
  mostKeyLooks,
  mostRowLooks,
  next,
  nexted,
  ofKey,
  once,
  oursOf,
  type Parts,
  spareLooks,
} from './first-rows.ts'
import type { Names } from './names.ts'
import { pauseText } from './pause-state.ts'
import { plannedAnew } from './planned-anew.ts'
import type { Statement } from './statement.ts'

export interface OrderedClaimInput {
  /** One for the whole claim: it proves who may settle these rows. */
  readonly token: string
  readonly queues: readonly OrderedQueue[]
  /** Messages of a newer generation are left where they are, and hold their key back; null: none is. */
  readonly generation?: number | null
}

/** What to take of one ordered queue, and from where. */
export interface OrderedQueue {
  readonly queue: string
  /** How many rows at most. */
  readonly room: number
  readonly leaseMs: number
  /** Fresh rows above this seq. */
  readonly after: string
  /** Due rows from this time on, in milliseconds since 1970; null: all of them. */
  readonly dueFromMs: number | null
  /** Keys whose last row here has been settled, and its seq: what comes next of them is looked for behind it. */
  readonly keys: readonly SettledKey[]
  /** Look at the first row of keys behind this one; null: do not. */
  readonly keysFrom: string | null
}

export interface SettledKey {
  readonly key: string
  readonly after: string
}

/** As of other queues, and how far it has looked. */
export interface OrderedQueueRow extends Omit<QueueRow, 'lowest'> {
  /** Up to which seq fresh rows have been looked at; null: there was none. */
  readonly reached: string | null
  /** There may be more behind it. */
  readonly more: string
  /** The last key that was looked at; null: it was the last there is, or none was asked for. */
  readonly lastkey: string | null
  /** More than 0: messages are due that have to take their place in their key first. */
  readonly joining: string
  /** Those of the settled keys whose next row could be had, and there was no room for it, as JSON; null: none. */
  readonly leftkeys: string | null
  /** Some could be had, by any way, and there was no room for them; or others have locked so many that not all that could be had was tried. */
  readonly leftover: string
}

/** With the message of its key that died before it; null: none did. */
export interface OrderedMessageRow extends MessageRow {
  readonly afterdead: string | null
}

export type OrderedClaimRow = OrderedQueueRow | OrderedMessageRow

/** So many rows of a key go into one lease at most. A claim takes as long as some twenty deletes. */
export const longestRun = 250

/**
 * Takes rows of ordered queues: of each key the first that lives, and, where there is room, those right behind it. The first is chosen **without** a
 * lock, and then that very row is locked: choosing among rows that are not locked would step over a first row that somebody is about to claim, and
 * take one behind it (2 violations in 1,999 messages). No row can appear before the first one that is seen: seq order is commit order
 * within a key (`lock-keys.ts`), and what is put back keeps its place.
 *
 * Where firsts are looked for: among what is due; right behind those that this process has settled; among the fresh rows above the
 * cursor, of which a limited number is looked at, most may be waiting; and, to find what nobody knows of (late commits, rows of dead
 * processes), by hopping from key to key over their index (1 ms for 100,000 rows of two keys, where walking over them took 2 s).
 *
 * - Of the fresh rows only the first of its key is worth a look at what lies before it: 1,000 rows of a key cost one.
 * - That look is "the last before it": `not exists` begins at the other end, with what is deleted and not yet vacuumed (618 ms against 16). Of keys
 *   that were settled here there is none: what was deleted, and a snapshot still sees, would be walked over with each claim.
 * - A key is looked up from both sides (`ofKey`), not by `=`: known to be one value, it is no part of the order, and a table that was analysed while it held
 *   one key is walked through by seq for each key that has none left (990,301 rows, where 301 do).
 * - Each way to a first row gets its share of the room, the lowest seq first: keys that always have a next one would leave nothing to the others.
 * - Firsts are locked in turn until the room is full: one that somebody has locked (by cancelling it, say) leaves its room to the next, or as many of them as there is
 *   room would stop the queue for as long as that transaction is open.
 * - Those behind the first are taken as far as they are free and without a gap. They are nobody else's: only who holds the first comes here.
 * - What somebody has written between this snapshot and the lock (a release of a lease that had ended) is not seen by the update. A follower can be locked all the same, and on minor
 *   releases before autumn 2025 a first, too: `seen` and `spot` differ. Nothing behind it is taken, or it would be overtaken.
 * - Laterals with a lock of their own cannot be flattened: they stay look-ups of one row, whatever the statistics say. Firsts by where they lie, which this snapshot has just seen.
 * - Queues are told apart by a number: to sort and group by their names took a millisecond of a claim of 500.
 *
 * Of a queue that is paused nothing is taken, and what is told of it is worth nothing but that.
 *
 * Everything comes back as text, messages in physical order.
 */
export function claimInOrder(
  names: Names,
  input: OrderedClaimInput,
): Statement<OrderedClaimRow, OrderedClaimInput> {
  const { token, queues, generation = null } = input
  const parts: Parts = {
    messages: names.messages,
    isOurs: oursOf(generation),
    settles: queues.some(({ keys }) => keys.length > 0),
    hops: queues.some(({ keysFrom }) => keysFrom !== null),
  }
  const { settles, hops } = parts
  const begin = `
with recursive quick as materialized (
  select set_config('synchronous_commit', 'off', true)`
  const rest = `
), wanted as materialized (
  select w.ord, w.queue, w.room, w."leaseMs", w.after, w.keys, w.afters, w."keysFrom" as keys_from,
         q.paused_at is not null as paused,
         coalesce(to_timestamp(w."dueFromMs" / 1000), '-infinity') as due_from,
         ${pauseText('q')} as pause
    from quick,
         jsonb_to_recordset($1::text::jsonb)
      as w(ord int, queue text, room int, "leaseMs" float8, after bigint, "dueFromMs" float8, keys jsonb, afters bigint[], "keysFrom" text)
    left join ${names.queues} as q
      on q.name = w.queue
   limit $2::int
)${settles ? next(parts) : ''}${hops ? hopping(parts) : ''}, sight as materialized (
  select w.ord, u.*
    from wanted as w
   cross join lateral (${inSight(parts)}) as u
   where not w.paused
), firsts as materialized (
  select w.ord, c.lane, c.seq, c.seen, c.due_at
    from wanted as w
   cross join lateral (
     ${due(parts)}
      union all
     ${fresh(parts)}) as c
   where not w.paused${settles ? nexted : ''}${hops ? hopped : ''}
), ranked as materialized (
  select ord, seq, seen, lane = 3 as is_fresh, row_number() over (order by lane = 1 desc, nth, seq) as place
    from (select *, row_number() over (partition by ord, lane order by due_at, seq) as nth from firsts) as f
   where ${once(parts)}
), picked as materialized (
  select p.*
    from wanted as w
   cross join lateral (
     select l.*, r.seen, r.place
       from (select r.seq, r.seen, r.place from ranked as r where r.ord = w.ord order by r.place) as r
      cross join lateral (
        select m.queue, m.key, m.seq, m.ctid as spot, m.due_at is null as is_fresh, ${suspectSeq} as suspect
          from ${names.messages} as m
         where m.ctid = r.seen
           and m.seq = r.seq
           and ${isFree('m.')}
           and (m.due_at is null or m.due_at <= now())
           and m.failed_at is null
           for update of m skip locked) as l
      limit w.room) as p
   limit $2::int * $3::int
)${following(parts)}, ${leased(names, 'taken')}
${queueRows(names, parts, generation)}
 union all
select 'message', c.queue, null, null, null, null, null, null, null, null, null, null, null, null,
${messageColumns},
       c.after_dead::text
  from claimed as c`
  return {
    name: 'claim_in_order',
    text: begin + rest,
    keptText: `${begin}\n   where ${plannedAnew('$2::int')}${rest}`,
    values: [
      JSON.stringify(queues.map(asked)),
      queues.length,
      queues.reduce((most, { room }) => Math.max(most, room), 0),
      token,
      ...(generation === null ? [] : [generation]),
    ],
    input,
  }
}

/** Keys and their seqs apart: half a millisecond less for 500 of them than objects take. */
function asked({ keys, ...queue }: OrderedQueue, ord: number): object {
  const afters = keys.map(({ after }) => after).join()
  return { ...queue, ord, keys: keys.map(({ key }) => key), afters: `{${afters}}` }
}

/**
 * What lies right behind those that were picked: shared out so that many keys get a little, and one key all of the room. Behind one that was put
 * back for later (a retry, a snooze) nothing is taken: it may be put back again, and they would have to be given back each time. When it is gone they are looked for behind it.
 */
function following({ messages, isOurs }: Parts): string {
  return `, shares as materialized (
  select w.queue, least(${longestRun}, w.room / greatest(1, count(p.seq)))::int as rows
    from wanted as w
    left join picked as p
      on p.queue = w.queue
   group by w.queue, w.room
), followers as materialized (
  select p.seq as head, f.seq, f.seen, f.place
    from picked as p
    join shares as s
      on s.queue = p.queue
   cross join lateral (
     select n.seq, n.seen,
            row_number() over (order by n.seq) as place,
            bool_and(n.due_at is null and ${isFree('n.')}${isOurs('n.')}) over (order by n.seq) as is_free
       from (select m.seq, m.ctid as seen, m.due_at, m.lease_token, m.leased_until, m.generation
               from ${messages} as m
              where ${ofKey('m.', { queue: 'p.queue', key: 'p.key', side: '>', seq: 'p.seq' })}
              order by m.queue, m.key, m.seq
              limit s.rows - 1) as n) as f
   where s.rows > 1
     and p.is_fresh
     and p.spot = p.seen
     and f.is_free
), locked as materialized (
  select f.head, f.place, f.seen, l.spot, l.suspect
    from followers as f
   cross join lateral (
     select m.ctid as spot, ${suspectSeq} as suspect
       from ${messages} as m
      where m.seq = f.seq
        and m.due_at is null
        and ${isFree('m.')}
        for update of m skip locked) as l
), taken as materialized (
  select spot, suspect
    from picked
   union all
  select l.spot, l.suspect
    from (select spot, suspect, place, row_number() over (partition by head order by place) as nth from locked where spot = seen) as l
   where l.place = l.nth
)`
}

/** How far each queue was looked through. Up to the last row in sight, unless there was no room for one of those that could be had, or not all of them were offered. */
function queueRows(names: Names, parts: Parts, generation: number | null): string {
  const { hops, settles } = parts
  const left = `ranked as r
                      where r.ord = w.ord
                        and r.place > (select case when count(*) = w.room then max(p.place) end from picked as p where p.queue = w.queue)`
  return `select 'queue' as kind,
       w.queue,
       pg_current_xact_id()::text as own,
       pg_current_snapshot()::text as snapshot,
       (select case when s.is_called then s.last_value else s.last_value - 1 end
          from ${names.sequence} as s)::text as top,
       ${nextDue(names, generation)} as nextdue,
       (extract(epoch from now()) * 1000)::text as now,
       w.pause,
       coalesce(f.first_left - 1, o.last_fresh, v.last)::text as reached,
       (f.first_left is not null or o.last_fresh is not null or v.seen = ${mostRowLooks})::text as more,
       ${hops ? `(select case when count(*) = ${mostKeyLooks} then max(h.key) end from hops as h where h.queue = w.queue)` : 'null'} as lastkey,
       exists (select
                 from (select m.later_key
                         from ${names.messages} as m, generate_series(w.room, w.room) as once
                        where m.queue = w.queue
                          and m.due_at >= w.due_from
                          and m.due_at <= now()
                          and ${mayJoin('m.', generation === null ? null : '$5::bigint')}
                        order by m.due_at, m.seq
                        limit ${mostDueLooks}) as d
                where d.later_key is not null)::int::text as joining,
       ${settles ? 'k.keys_left::text' : 'null'} as leftkeys,
       (f.left_over > 0 or o.last_fresh is not null or o.is_due_cut)::text as leftover,
       null as id, null as seq, null as key, null as timer, null as body, null as headers, null as attempts,
       null as deliveries, null as suspect, null as created, null as first, null as generation, null as due, null as afterdead
  from wanted as w
 cross join lateral (select count(*) as seen, max(u.seq) as last from sight as u where u.ord = w.ord) as v
 cross join lateral (select min(r.seq) filter (where r.is_fresh) as first_left,
                            count(*) as left_over
                       from ${left}) as f${
                         settles
                           ? `
 cross join lateral (select jsonb_agg(n.key) as keys_left from nexts as n where n.seq in (select r.seq from ${left})) as k`
                           : ''
                       }
 cross join lateral (select case when count(*) filter (where c.lane = 3) = ${mostFresh(parts)} then max(c.seq) filter (where c.lane = 3) end as last_fresh,
                            count(*) filter (where c.lane = 1) = w.room + ${spareLooks} as is_due_cut
                       from firsts as c
                      where c.ord = w.ord) as o`
}
