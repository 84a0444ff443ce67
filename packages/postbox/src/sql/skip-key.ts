import type { Names } from './names.ts'
import { goingOn, type KeyOfQueue, parkedHead } from './parked-keys.ts'
import type { Statement } from './statement.ts'
import { type Wake, wakeQueuesClause } from './wake.ts'

export interface KeySkip extends KeyOfQueue {
  readonly by: string
  /** The id of the operation that tells of it. */
  readonly operation: string
  readonly wake: Wake
}

/**
 * Lets a key go on without the message that holds it, which stays dead where it lies; and writes down who did: all or nothing. Who comes second waits for the first one, and finds
 * that it is parked no more: for read committed transactions only. No row: nothing is parked there.
 */
export function skipKey(names: Names, skip: KeySkip): Statement<{ readonly id: string }, KeySkip> {
  const { queue, key, by, operation, wake } = skip
  return {
    name: 'skip_key',
    text: `
with ${parkedHead(names, { queue: '$1::text', key: '$2::text' })}, skipped as (
  update ${names.messages}
     set parked_at = null
   where seq = (select seq from head)
     and parked_at is not null
  returning queue, key, seq, id
), ${goingOn(names, 'skipped')}${wakeQueuesClause(names, wake)}
, told as (
  insert into ${names.operations} (operation_id, kind, started_by, filter, settings, finished_at, changed)
  select $3::uuid, 'skip', $4::text, jsonb_build_object('queue', queue, 'key', key, 'id', id), '{}', now(), 1
    from skipped
)
select id::text as id, (select count(*) from woken)::int as woken
  from skipped`,
    values: [queue, key, operation, by],
    input: skip,
  }
}
