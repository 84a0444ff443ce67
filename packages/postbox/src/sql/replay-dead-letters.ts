import type { ReplaySettings } from '../core/bulk-options.ts'
import { advancing, type Batch, type BatchRow, choosing, progress } from './batch-of-operation.ts'
import { type Bind, binder, columnsOf } from './dead-letters.ts'
import {
  isDueNow,
  isInserted,
  isNameFree,
  landedColumns,
  landedValues,
  landingOf,
  lifeAgain,
  lockLandings,
} from './landing.ts'
import type { Names } from './names.ts'
import { onConflict } from './on-conflict.ts'
import { historyAfter } from './replay-dead-letter.ts'
import type { Statement } from './statement.ts'
import { type Wake, wakeQueuesClause } from './wake.ts'

export interface ReplayBatch extends Batch {
  readonly by: string
  readonly settings: ReplaySettings
  readonly historyLimit: number
  readonly wake: Wake
}

/**
 * Replays the oldest dead letters that an operation has left, as `replayDeadLetter` does it for one, and writes how far the operation has come: both
 * or neither, so that whoever goes on repeats nothing. The operation's row is locked by the same transaction before (`lockOperation`).
 *
 * Of those that others have locked, none is waited for: they are theirs. A timer whose name is taken, by one that waits or by an older one of this
 * batch, stays dead and is counted; one that is armed meanwhile is waited for, and in the quarantine that may end in 23505.
 *
 * In an ordered queue as a single replay, with the locks of all their keys. Which queues are ordered is asked once (`orders`): for each dead letter, it was
 * 1,000 of the 6,700 pages that a batch of 500 took.
 *
 * With a pace each is due a step after the one before it, over the operation's whole life, and none before its time; without one, as for a single replay.
 */
export function replayDeadLetters(names: Names, batch: ReplayBatch): Statement<BatchRow, ReplayBatch> {
  const { bind, values } = binder()
  const { generation, limit } = batch.settings
  const newGeneration = `${bind(generation)}::bigint`
  const history = {
    by: `${bind(batch.by)}::text`,
    generation: newGeneration,
    historyLimit: `${bind(batch.historyLimit)}::int`,
    operation: `${bind(batch.operation)}::text`,
  }
  const landed = '(select count(*) from inserted)'
  const came = {
    changed: landed,
    conflicts: `(select count(*) from taken) - ${landed}`,
    lastDueAt: '(select max(due_at) from inserted)',
    limit: `${bind(limit)}::bigint`,
  }
  return {
    name: 'replay_dead_letters',
    text: `
with ${choosing(names, batch, { bind, columns: columnsOf })}, taken as materialized (
  select t.*, row_number() over (partition by queue, timer order by failed_at, place, seq) as nth
    from (select * from locked_moved
          union all
          select * from locked_quarantined) as t
), orders as materialized (
  select name, message_order
    from ${names.queues}
   where name = any(array(select distinct queue from taken where key is not null))
), landing as materialized (
  select r.*, row_number() over (order by failed_at, place, seq) - 1 as steps
    from (select taken.*,
                 coalesce(${newGeneration}, generation) as generation_after,
                 ${historyAfter(history)} as history_after,
                 timer is null or (nth = 1 and ${isNameFree(names)}) as is_named,
                 ${landingOf({ queues: 'orders' })} as lands
            from taken) as r
   where r.is_named
      or r.lands = 'in_place'
), replayed as materialized (
  select landing.*, ${dueOf(names, batch, bind)} as due
    from landing
), ${lockLandings(names)}, moved as (
  insert into ${names.messages} as m (${landedColumns})
  select ${landedValues}
    from replayed, ordered
   where ${isInserted}
   order by steps${onConflict('keep')}
  returning m.id, m.queue, m.due_at, m.timer_id
), landed as (
  select id, queue, count(*) as copies from moved group by id, queue
), freed as (
  update ${names.messages} as m
     set ${lifeAgain}
    from replayed as r
   where not ${isInserted}
     and m.seq = r.seq
  returning m.queue, m.due_at
), left_place as materialized (
  select r.place, r.seq
    from (select place, seq, id, queue, timer, row_number() over (partition by id, queue order by steps) as copy
            from replayed
           where ${isInserted}) as r
    join landed as l
      on l.id = r.id
     and l.queue = r.queue
     and r.copy <= l.copies
   where r.timer is null
      or (r.queue, r.timer) in (select queue, timer_id from moved)
), gone as (
  delete from ${names.dead}
   where dead_seq = any(array(select seq from left_place where place = 'moved'))
), gone_quarantined as (
  delete from ${names.messages}
   where seq = any(array(select seq from left_place where place = 'quarantined'))
), inserted as (
  select queue, due_at from moved
  union all
  select queue, due_at from freed
)${wakeQueuesClause(names, batch.wake)}
, ${advancing(names, batch, { bind, ...came })}
select ${progress}, (select count(*) from woken)::int as woken
  from advanced`,
    values,
    input: batch,
  }
}

/** When a row of `landing` is due: null for one that is to be fresh. */
function dueOf(names: Names, { operation, settings }: ReplayBatch, bind: Bind): string {
  const { perSecond, delayMs } = settings
  const delay = `${bind(delayMs)}::float8`
  const earliest = `statement_timestamp() + make_interval(secs => ${delay} / 1000)`
  if (perSecond === null) return `case when ${delay} > 0 or ${isDueNow} then ${earliest} end`
  const step = `(1 / ${bind(perSecond)}::float8)`
  const last = `(select last_due_at from ${names.operations} where operation_id = ${bind(operation)}::uuid)`
  return `greatest(${earliest}, ${last} + make_interval(secs => ${step})) + make_interval(secs => steps * ${step})`
}
