import { keptColumns } from './dead-columns.ts'
import { columnsOf } from './dead-letters.ts'
import { onConflict } from './draft-rows.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { type Wake, wakeQueuesClause } from './wake.ts'

export interface Replay {
  readonly id: string
  readonly by: string
  /** null: as it was. */
  readonly generation: number | null
  readonly delayMs: number
  /** Cycles that are kept; older ones are dropped, and counted. */
  readonly historyLimit: number
  readonly wake: Wake
}

export interface ReplayAnswer {
  readonly answer: 'replayed' | 'not_found' | 'already_replayed' | 'timer_conflict'
}

/** What a replay writes anew; everything else that was kept of the message comes back as it was. */
const renewed: readonly string[] = ['deliveries', 'generation', 'failure_history']
const kept = keptColumns.filter((column) => !renewed.includes(column)).join(', ')
const delay = 'make_interval(secs => $4::float8 / 1000)'

/**
 * Puts the newest dead letter of an id back among the messages, in one statement: a moved one is inserted anew, at the end of its queue, and
 * leaves the dead letters only if the insert landed; a quarantined one is set free where it lies, in the due lane, because its seq lies
 * below every cursor. Who comes second waits for the first one's lock, and finds that the row which he saw (`newest`) is not there any more
 * (`taken`): for read committed transactions only.
 *
 * A waiting timer of the same name keeps it: then nothing is changed. One whose transaction is open is waited for; in the quarantine that may
 * end in 23505, after which the same statement finds the timer.
 */
export function replayDeadLetter(names: Names, replay: Replay): Statement<ReplayAnswer, Replay> {
  return {
    name: 'replay_dead_letter',
    text: `
with newest as materialized (
  (select 'moved' as place, dead_seq as seq, failed_at
     from ${names.dead}
    where id = $1::uuid)
  union all
  (select 'quarantined', seq, failed_at
     from ${names.messages}
    where id = $1::uuid
      and failed_at is not null)
  order by failed_at desc, place, seq desc
  limit 1
), locked_moved as materialized (
  select ${columnsOf.moved}
    from ${names.dead}
   where dead_seq = (select seq from newest where place = 'moved')
     for update
), locked_quarantined as materialized (
  select ${columnsOf.quarantined}
    from ${names.messages}
   where seq = (select seq from newest where place = 'quarantined')
     and failed_at is not null
     for update
), taken as materialized (
  select * from locked_moved
  union all
  select * from locked_quarantined
), replayed as materialized (
  select taken.*, coalesce($3::bigint, generation) as generation_after, ${history} as history_after
    from taken
), moved as (
  insert into ${names.messages} as m (${kept}, generation, failure_history, timer_id, due_at)
  select ${kept}, generation_after, history_after, timer, case when $4::float8 > 0 then statement_timestamp() + ${delay} end
    from replayed
   where place = 'moved'${onConflict('keep')}
  returning m.queue, m.due_at
), freed as (
  update ${names.messages} as m
     set generation = r.generation_after,
         failure_history = r.history_after,
         timer_id = r.timer,
         fired_timer_id = null,
         due_at = statement_timestamp() + ${delay},
         attempts = 0,
         deliveries = 0,
         first_attempt_at = null,
         last_attempt_at = null,
         failed_at = null,
         failure_reason = null,
         last_error = null
    from replayed as r
   where r.place = 'quarantined'
     and m.seq = r.seq
     and not exists (select
                       from ${names.messages} as t
                      where t.queue = r.queue
                        and t.timer_id = r.timer
                        and t.failed_at is null)
  returning m.queue, m.due_at
), gone as (
  delete from ${names.dead}
   where dead_seq = (select seq from replayed where place = 'moved')
     and exists (select from moved)
), inserted as (
  select * from moved
  union all
  select * from freed
)${wakeQueuesClause(names, replay.wake)}
select case
         when exists (select from inserted) then 'replayed'
         when exists (select from taken) then 'timer_conflict'
         when exists (select from newest) then 'already_replayed'
         else 'not_found'
       end as answer,
       (select count(*) from woken)::int as woken`,
    values: [replay.id, replay.by, replay.generation, replay.delayMs, replay.historyLimit],
    input: replay,
  }
}

/** Read back by `historyFrom`. Times are written out, so that they can be read in psql, and by the database's clock. */
const cycle = `jsonb_build_object(
           'attempts', attempts,
           'deliveries', deliveries,
           'firstAttemptAt', ${iso('first_attempt_at')},
           'lastAttemptAt', ${iso('last_attempt_at')},
           'failedAt', ${iso('failed_at')},
           'reason', failure_reason,
           'error', last_error,
           'replayedAt', ${iso('statement_timestamp()')},
           'replayedBy', $2::text,
           'generationBefore', generation,
           'generationAfter', coalesce($3::bigint, generation))`

/** What is there before it; another shape than ours counts as nothing, so that no row is beyond replay. */
const cyclesBefore = `case jsonb_typeof(failure_history -> 'cycles') when 'array' then failure_history -> 'cycles' else '[]' end`
const droppedBefore = `case jsonb_typeof(failure_history -> 'dropped') when 'number' then (failure_history -> 'dropped')::bigint else 0 end`

/** The history of a row of `taken` with the cycle that ends here, without the oldest ones when there are too many. */
const history = `(
    select jsonb_build_object(
             'dropped', ${droppedBefore} + count(*) filter (where age >= $5::int),
             'cycles', jsonb_agg(cycle order by age desc) filter (where age < $5::int))
      from (select cycle, jsonb_array_length(cycles) - nth as age
              from (select ${cyclesBefore} || ${cycle} as cycles) as together,
                   jsonb_array_elements(cycles) with ordinality as c(cycle, nth)) as aged)`

function iso(time: string): string {
  return `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}
