import type { Names } from './names.ts'
import { goingOn } from './parked-keys.ts'
import { newestOf } from './replay-dead-letter.ts'
import type { Statement } from './statement.ts'
import { type Wake, wakeQueuesClause } from './wake.ts'

export interface Discard {
  readonly id: string
  readonly by: string
  /** The id of the operation that tells of it. */
  readonly operation: string
  readonly wake: Wake
}

/**
 * Deletes the newest dead letter of an id, and writes down who did: both or neither. Who comes second waits for the first one, and finds it gone. No
 * row: there is none, or there is none any more. The key of one that was parked goes on.
 */
export function discardDeadLetter(
  names: Names,
  discard: Discard,
): Statement<{ readonly discarded: string }, Discard> {
  const { id, by, operation, wake } = discard
  return {
    name: 'discard_dead_letter',
    text: `
with newest as materialized (${newestOf(names, '$1::uuid')}
), gone_moved as (
  delete from ${names.dead}
   where dead_seq = (select seq from newest where place = 'moved')
  returning id
), gone_quarantined as (
  delete from ${names.messages}
   where seq = (select seq from newest where place = 'quarantined')
     and failed_at is not null
  returning queue, key, seq, id, parked_at
), unparked as materialized (
  select * from gone_quarantined where parked_at is not null
), ${goingOn(names, 'unparked')}${wakeQueuesClause(names, wake)}
, told as (
  insert into ${names.operations} (operation_id, kind, started_by, filter, settings, finished_at, changed)
  select $2::uuid, 'discard', $3::text, jsonb_build_object('id', id), '{}', now(), 1
    from (select id from gone_moved union all select id from gone_quarantined) as gone
  returning changed
)
select changed::text as discarded, (select count(*) from woken)::int as woken
  from told`,
    values: [id, operation, by],
    input: discard,
  }
}
