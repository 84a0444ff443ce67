import type { Conflict, Draft } from '../core/message.ts'
import type { DeliveredStorage } from '../core/storage-modes.ts'
import { recordMembers, recordOf, recordShape, valuesOfOrdered, valuesOfRecord } from './draft-records.ts'
import { insertedColumns, orderedColumns } from './draft-rows.ts'
import { amongSeqs, type Fence, fenceArrays } from './fence.ts'
import { deliveredColumns, keepDelivered } from './keep-delivered.ts'
import { lockKeys, mostKeyLocks } from './lock-keys.ts'
import type { Names } from './names.ts'
import { onConflict } from './on-conflict.ts'
import type { Statement } from './statement.ts'
import { patience } from './take-names.ts'
import { type Wake, wakeQueuesClause } from './wake.ts'

export interface SettledWithFollowOns extends Fence {
  readonly followOns: readonly Draft[]
}

export interface FollowOnInput {
  readonly settled: readonly SettledWithFollowOns[]
  readonly wake: Wake
  /** @default 'delete' */
  readonly delivered?: DeliveredStorage | undefined
}

/**
 * Deletes messages whose handlers succeeded (or moves them to where delivered ones are kept), and inserts what they published, of any queues: one statement, so both or none. Fenced: only the
 * holder of the lease may write, and one that was lost inserts nothing. Follow-ons get their seq in the order of the drafts.
 *
 * - One insert for all, or seqs would not follow the drafts. Its conflict clause is the strongest that is asked for: what is not a timer
 *   meets no conflict, and a timer that is to be kept is left alone by a condition.
 * - A statement may not write a row twice, so of several timers of one name one is chosen, as if they had been published one after the
 *   other: the last that replaces, else the first. Chosen here, where it is known whose delete landed.
 * - A timer whose name somebody is about to take, or an ordered key that somebody has published to, and has not committed, is not waited for:
 *   55P03 (see `takingNames`).
 *
 * Returns the seqs deleted; one that is missing had lost its lease.
 */
export function deleteWithFollowOns(
  names: Names,
  input: FollowOnInput,
): Statement<{ readonly seq: string }, FollowOnInput> {
  const { settled, wake, delivered } = input
  const isKept = delivered === 'table'
  const drafts = settled.flatMap(({ followOns }) => followOns)
  const conflict = strongestOf(drafts)
  const ordered = drafts.filter((draft) => draft.isOrdered)
  const isOrdered = ordered.length > 0
  const isPatient = conflict === 'none' && !isOrdered
  return {
    name: 'delete_with_follow_ons',
    text: `
with ${isPatient ? '' : `${patience}, `}settled as (
  delete from ${names.messages} as m
   using ${isPatient ? '' : 'patience, '}unnest($1::text::bigint[], $2::text::uuid[]) as s(seq, token)
   where m.seq = s.seq
     and m.lease_token = s.token
     and ${amongSeqs}
  returning ${isKept ? deliveredColumns : 'm.seq'}
)${isKept ? `, kept as (\n  ${keepDelivered(names, 'settled')}\n)` : ''}, drafts as materialized (
  select d.*,
         row_number() over (partition by d.queue, d.timer
                                order by case d.conflict when 'replace' then -d.place else d.place end) as choice
    from rows from (
           jsonb_to_recordset($3::text::jsonb)
             as (cause bigint, queue text, conflict text, is_ordered boolean, ${recordShape})
         ) with ordinality
      as d(cause, queue, conflict, is_ordered, ${recordMembers}, place)
    join settled as s
      on s.seq = d.cause
), ${isOrdered ? `${lockKeys(names, '(select queue, key from drafts where is_ordered)', keysOf(ordered) > mostKeyLocks)}, ` : ''}inserted as (
  insert into ${names.messages} as m (${isOrdered ? orderedColumns : insertedColumns})
  select ${isOrdered ? valuesOfOrdered : valuesOfRecord}
    from drafts${isOrdered ? ',\n         ordered' : ''}
   where timer is null
      or choice = 1
   order by place${onConflict(conflict, isOrdered)}${conflict === 'replace' ? unlessKept : ''}
  returning m.queue, m.due_at
)${wakeQueuesClause(names, wake)}
select seq::text as seq, (select count(*) from woken)::int as woken
  from settled`,
    values: [...fenceArrays(settled), JSON.stringify(settled.flatMap(recordsOf))],
    input,
  }
}

// By its name: there is one of each.
const unlessKept = `
     and (excluded.queue, excluded.timer_id) in (select d.queue, d.timer from drafts as d where d.choice = 1 and d.conflict = 'replace')`

function keysOf(drafts: readonly Draft[]): number {
  return new Set(drafts.map(({ queue, key }) => `${queue}\0${key}`)).size
}

function strongestOf(drafts: readonly Draft[]): Conflict {
  const asked = new Set(drafts.map(({ conflict }) => conflict))
  if (asked.has('replace')) return 'replace'
  return asked.has('keep') ? 'keep' : 'none'
}

function recordsOf({ seq, followOns }: SettledWithFollowOns): readonly Record<string, unknown>[] {
  return followOns.map((draft) => ({
    cause: seq,
    queue: draft.queue,
    conflict: draft.conflict,
    is_ordered: draft.isOrdered ?? false,
    ...recordOf(draft),
  }))
}
