import type { Conflict, Draft } from '../core/message.ts'
import type { DeliveredStorage } from '../core/storage-modes.ts'
import { recordMembers, recordOf, recordShape, valuesOfRecord } from './draft-records.ts'
import { insertedColumns, onConflict } from './draft-rows.ts'
import { type Fence, fenceArrays } from './fence.ts'
import { deliveredColumns, keepDelivered } from './keep-delivered.ts'
import type { Names } from './names.ts'
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
 * - A timer whose name somebody is about to take, and has not committed, is not waited for: 55P03 (see `takingNames`).
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
  return {
    name: 'delete_with_follow_ons',
    text: `
with ${conflict === 'none' ? '' : `${patience}, `}settled as (
  delete from ${names.messages} as m
   using ${conflict === 'none' ? '' : 'patience, '}unnest($1::text::bigint[], $2::text::uuid[]) as s(seq, token)
   where m.seq = s.seq
     and m.lease_token = s.token
  returning ${isKept ? deliveredColumns : 'm.seq'}
)${isKept ? `, kept as (\n  ${keepDelivered(names, 'settled')}\n)` : ''}, drafts as materialized (
  select d.*,
         row_number() over (partition by d.queue, d.timer
                                order by case d.conflict when 'replace' then -d.place else d.place end) as choice
    from rows from (
           jsonb_to_recordset($3::text::jsonb)
             as (cause bigint, queue text, conflict text, ${recordShape})
         ) with ordinality
      as d(cause, queue, conflict, ${recordMembers}, place)
    join settled as s
      on s.seq = d.cause
), inserted as (
  insert into ${names.messages} as m (${insertedColumns})
  select ${valuesOfRecord('queue')}
    from drafts
   where timer is null
      or choice = 1
   order by place${onConflict(conflict)}${conflict === 'replace' ? unlessKept : ''}
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
    ...recordOf(draft),
  }))
}
