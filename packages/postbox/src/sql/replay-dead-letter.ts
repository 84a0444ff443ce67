import { columnsOf } from './dead-letters.ts'
import {
  isDueNow,
  isInserted,
  isNameFree,
  type Landing,
  landedColumns,
  landedValues,
  landingOf,
  lifeAgain,
  lockLandings,
} from './landing.ts'
import type { Names } from './names.ts'
import { onConflict } from './on-conflict.ts'
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
  /** Where it is, or would have been; null: there is none. */
  readonly lands: Landing | null
}

/** What a history tells of a replay, and how long it may be, as SQL expressions. */
export interface HistoryTerms {
  readonly by: string
  /** Null: as it was. */
  readonly generation: string
  readonly historyLimit: string
  /** Null: it was replayed by itself. */
  readonly operation: string
}

/** What a replay is told, as SQL expressions: parameters of a statement, or constants inside the function of operators. */
export interface ReplayTerms extends HistoryTerms {
  readonly id: string
  readonly delayMs: string
}

/** A timer that was armed meanwhile is found by the second try; one that is armed and cancelled again and again, by no number of them. */
export const mostReplayTries = 3

export function replayDeadLetter(names: Names, replay: Replay): Statement<ReplayAnswer, Replay> {
  const terms: ReplayTerms = {
    id: '$1::uuid',
    by: '$2::text',
    generation: '$3::bigint',
    delayMs: '$4::float8',
    historyLimit: '$5::int',
    operation: 'null::text',
  }
  return {
    name: 'replay_dead_letter',
    text: replaySql(names, terms, replay.wake),
    values: [replay.id, replay.by, replay.generation, replay.delayMs, replay.historyLimit],
    input: replay,
  }
}

/**
 * Puts the newest dead letter of an id back among the messages, in one statement: a moved one is inserted anew, at the end of its queue, and
 * leaves the dead letters only if the insert landed; a quarantined one is set free where it lies, in the due lane, because its seq lies
 * below every cursor. In an ordered queue the latter is for one that holds its key; all others are inserted behind their key, with its lock.
 * Who comes second waits for the first one's lock, and finds that the row which he saw (`newest`) is not there any more
 * (`taken`): for read committed transactions only.
 *
 * A waiting timer of the same name keeps it: then nothing is changed. One whose transaction is open is waited for; in the quarantine that may
 * end in 23505, after which the same statement finds the timer.
 */
export function replaySql(names: Names, terms: ReplayTerms, wake: Wake): string {
  const delay = `make_interval(secs => ${terms.delayMs} / 1000)`
  return `
with newest as materialized (${newestOf(names, terms.id)}
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
), landing as materialized (
  select taken.*,
         coalesce(${terms.generation}, generation) as generation_after,
         ${historyAfter(terms)} as history_after,
         ${isNameFree(names)} as is_named,
         ${landingOf(names)} as lands
    from taken
), replayed as materialized (
  select landing.*, case when ${terms.delayMs} > 0 or ${isDueNow} then statement_timestamp() + ${delay} end as due
    from landing
), ${lockLandings(names)}, moved as (
  insert into ${names.messages} as m (${landedColumns})
  select ${landedValues}
    from replayed, ordered
   where ${isInserted}${onConflict('keep')}
  returning m.queue, m.due_at
), freed as (
  update ${names.messages} as m
     set ${lifeAgain}
    from replayed as r
   where not ${isInserted}
     and m.seq = r.seq
     and (r.is_named or r.lands = 'in_place')
  returning m.queue, m.due_at
), gone as (
  delete from ${names.dead}
   where dead_seq = (select seq from replayed where place = 'moved')
     and exists (select from moved)
), left_place as (
  delete from ${names.messages}
   where seq = (select seq from replayed where place = 'quarantined' and lands = 'behind_key')
     and exists (select from moved)
), inserted as (
  select * from moved
  union all
  select * from freed
)${wakeQueuesClause(names, wake)}
select case
         when exists (select from inserted) then 'replayed'
         when exists (select from taken) then 'timer_conflict'
         when exists (select from newest) then 'already_replayed'
         else 'not_found'
       end as answer,
       (select lands from replayed) as lands,
       (select count(*) from woken)::int as woken`
}

/** What is there before it; another shape than ours counts as nothing, so that no row is beyond replay. */
const cyclesBefore = `case jsonb_typeof(failure_history -> 'cycles') when 'array' then failure_history -> 'cycles' else '[]' end`
const droppedBefore = `case jsonb_typeof(failure_history -> 'dropped') when 'number' then (failure_history -> 'dropped')::bigint else 0 end`

/** The history of a row of `taken` with the cycle that ends here, without the oldest ones when there are too many. */
export function historyAfter(terms: HistoryTerms): string {
  return `(
    select jsonb_build_object(
             'dropped', ${droppedBefore} + count(*) filter (where age >= ${terms.historyLimit}),
             'cycles', jsonb_agg(cycle order by age desc) filter (where age < ${terms.historyLimit}))
      from (select cycle, jsonb_array_length(cycles) - nth as age
              from (select ${cyclesBefore} || ${cycleOf(terms)} as cycles) as together,
                   jsonb_array_elements(cycles) with ordinality as c(cycle, nth)) as aged)`
}

/** The dead letter that an id means, wherever it lies. `id` is an SQL expression. */
export function newestOf(names: Names, id: string): string {
  return `
  (select 'moved' as place, dead_seq as seq, failed_at
     from ${names.dead}
    where id = ${id})
  union all
  (select 'quarantined', seq, failed_at
     from ${names.messages}
    where id = ${id}
      and failed_at is not null)
  order by failed_at desc, place, seq desc
  limit 1`
}

/** Read back by `historyFrom`. Times are written out, so that they can be read in psql, and by the database's clock. */
function cycleOf({ by, generation, operation }: HistoryTerms): string {
  return `jsonb_build_object(
           'attempts', attempts,
           'deliveries', deliveries,
           'firstAttemptAt', ${iso('first_attempt_at')},
           'lastAttemptAt', ${iso('last_attempt_at')},
           'failedAt', ${iso('failed_at')},
           'reason', failure_reason,
           'error', last_error,
           'replayedAt', ${iso('statement_timestamp()')},
           'replayedBy', ${by},
           'generationBefore', generation,
           'generationAfter', coalesce(${generation}, generation),
           'operation', ${operation})`
}

function iso(time: string): string {
  return `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}
