import { amongRecords, amongSeqs, type Fence, fenceArrays } from './fence.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface Extension extends Fence {
  readonly leaseMs: number
}

/** So many at most in one statement: each row is compared with all that are named, up to twice (0043). */
export const mostExtended = 1_000

/**
 * Lets leases end later. Steps over rows that are locked: a plain update would wait for a handler's own transaction on the row, and
 * acknowledgements of its neighbours behind it (804 ms, as long as the handler took; like this 1.6).
 * Returns the seqs written; one that is missing is lost, or locked: see `holdsLeases`.
 */
export function extendLeases(
  names: Names,
  extensions: readonly Extension[],
): Statement<{ readonly seq: string }, readonly Extension[]> {
  return {
    name: 'extend_leases',
    text: `
with quick as materialized (
  select set_config('synchronous_commit', 'off', true)
), wanted as materialized (
  select s.*
    from quick,
         jsonb_to_recordset($1::text::jsonb) as s(seq bigint, token uuid, "leaseMs" float8)
)
update ${names.messages} as m
   set leased_until = now() + make_interval(secs => w."leaseMs" / 1000)
  from wanted as w
 where m.ctid = any(array(
   select m.ctid
     from wanted as s
     join ${names.messages} as m
       on m.seq = s.seq
      and m.lease_token = s.token
      and ${amongRecords}
      for update of m skip locked))
   and m.seq = w.seq
   and ${amongRecords}
returning m.seq::text as seq`,
    values: [JSON.stringify(extensions)],
    input: extensions,
  }
}

/** Which leases are still held: a look without a lock, at what a renewal stepped over. */
export function holdsLeases(
  names: Names,
  fences: readonly Fence[],
): Statement<{ readonly seq: string }, readonly Fence[]> {
  return {
    name: 'holds_leases',
    text: `
select m.seq::text as seq
  from unnest($1::text::bigint[], $2::text::uuid[]) as s(seq, token)
  join ${names.messages} as m
    on m.seq = s.seq
   and m.lease_token = s.token
   and ${amongSeqs}`,
    values: fenceArrays(fences),
    input: fences,
  }
}
