import { type Fence, fenceArrays } from './fence.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/**
 * Deletes messages whose handlers succeeded. Fenced: only the holder of the lease may write.
 * Returns the seqs deleted; one that is missing had lost its lease.
 */
export function deleteAcked(
  names: Names,
  fences: readonly Fence[],
): Statement<{ readonly seq: string }, readonly Fence[]> {
  return {
    name: 'delete_acked',
    text: `
delete from ${names.messages} as m
 using unnest($1::text::bigint[], $2::text::uuid[]) as s(seq, token)
 where m.seq = s.seq
   and m.lease_token = s.token
returning m.seq::text as seq`,
    values: fenceArrays(fences),
    input: fences,
  }
}
