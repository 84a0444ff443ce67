import { amongSeqs, arrayOf, type Fence, fenceArrays } from './fence.ts'
import { literal, type Names } from './names.ts'
import type { Statement } from './statement.ts'
import { type PutBack, takingNames } from './take-names.ts'

/** A lease that is given back. */
export interface Release extends Fence {
  /** How many deliveries were counted before its claim. */
  readonly deliveriesBefore: number
}

/**
 * Gives back rows that were claimed and never started, as if they had not been: the lease is cleared and its delivery not counted. The
 * count is put back to what it was, not lowered: a suspect's delivery may not be counted yet, or its counting not be answered.
 * Fenced: only the holder may. They lie below every cursor, so whoever listens is told to look, by queue; it sweeps then.
 * `takeNames`: timers take their names back.
 * Returns the seqs written; one that is missing had lost its lease.
 */
export function releaseLeases(
  names: Names,
  releases: readonly Release[],
  takeNames: boolean,
): Statement<{ readonly seq: string }, PutBack<Release>> {
  const taking = takingNames(names, takeNames)
  return {
    name: 'release_leases',
    text: `
with ${taking.patience}released as (
  update ${names.messages} as m
     set lease_token = null,
         leased_until = null,
         deliveries = s.deliveries${taking.set}
    from ${taking.from}unnest($1::text::bigint[], $2::text::uuid[], $3::text::int[]) as s(seq, token, deliveries)
   where m.seq = s.seq
     and m.lease_token = s.token
     and ${amongSeqs}
  returning m.seq, m.queue
), told as materialized (
  select pg_notify(${literal(names.channel)}, q.queue)
    from (select distinct queue from released) as q
   where pg_notification_queue_usage() < 0.5
)
select seq::text as seq, (select count(*) from told)::int as told
  from released`,
    values: [...fenceArrays(releases), arrayOf(releases.map(({ deliveriesBefore }) => deliveriesBefore))],
    input: { batch: releases, takeNames },
  }
}
