import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/** The proof that one row may be settled: its place and the token of the claim that leased it. */
export interface Fence {
  readonly seq: string
  readonly token: string
}

/**
 * Deletes messages whose handlers succeeded. Fenced: only the holder of the lease may write.
 * Returns the seqs deleted; one that is missing had lost its lease.
 */
export function deleteAcked(names: Names, fences: readonly Fence[]): Statement<{ readonly seq: string }> {
  return {
    name: 'delete_acked',
    text: `
delete from ${names.messages} as m
 using unnest($1::text::bigint[], $2::text::uuid[]) as s(seq, token)
 where m.seq = s.seq
   and m.lease_token = s.token
returning m.seq::text as seq`,
    values: [arrayOf(fences.map((fence) => fence.seq)), arrayOf(fences.map((fence) => fence.token))],
  }
}

/** An array literal, for values that need no quoting. Not an array of the client's: some clients cannot encode those. */
function arrayOf(values: readonly string[]): string {
  return `{${values.join(',')}}`
}
