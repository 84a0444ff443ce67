import type { DeliveredStorage } from '../core/storage-modes.ts'
import { type Fence, fenceArrays } from './fence.ts'
import { deliveredColumns, keepDelivered } from './keep-delivered.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface AckInput {
  readonly fences: readonly Fence[]
  readonly delivered: DeliveredStorage
}

/**
 * Deletes messages whose handlers succeeded, or moves them to where delivered ones are kept. Fenced: only the holder of the lease may write.
 * Returns the seqs deleted; one that is missing had lost its lease.
 */
export function deleteAcked(
  names: Names,
  fences: readonly Fence[],
  delivered: DeliveredStorage = 'delete',
): Statement<{ readonly seq: string }, AckInput> {
  const deleting = `delete from ${names.messages} as m
 using unnest($1::text::bigint[], $2::text::uuid[]) as s(seq, token)
 where m.seq = s.seq
   and m.lease_token = s.token`
  const moving = `with gone as (
${deleting}
returning ${deliveredColumns}
), kept as (
  ${keepDelivered(names, 'gone')}
)
select seq::text as seq
  from gone`
  return {
    name: 'delete_acked',
    text: delivered === 'table' ? `\n${moving}` : `\n${deleting}\nreturning m.seq::text as seq`,
    values: fenceArrays(fences),
    input: { fences, delivered },
  }
}
