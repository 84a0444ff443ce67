import type { Fence } from './fence.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface Burial extends Fence {
  readonly reason: string
  readonly error: string
}

/** What a dead letter keeps of its message, as both tables name it. */
const kept =
  'id, queue, key, timer_id, body, headers, deliveries, created_at, generation, failure_history' as const

/**
 * Moves messages to the dead letters: one statement, so a message is in exactly one of the tables whatever dies. The run that led here
 * counts as an attempt. Fenced: only the holder of the lease may write.
 * Returns the seqs moved; one that is missing had lost its lease.
 */
export function buryDead(names: Names, burials: readonly Burial[]): Statement<{ readonly seq: string }> {
  return {
    name: 'bury_dead',
    text: `
with gone as (
  delete from ${names.messages} as m
   using jsonb_to_recordset($1::text::jsonb) as s(seq bigint, token uuid, reason text, error text)
   where m.seq = s.seq
     and m.lease_token = s.token
  returning m.*, s.reason, s.error
), buried as (
  insert into ${names.dead} (original_seq, ${kept}, attempts, first_attempt_at, last_attempt_at, failure_reason, last_error)
  select seq, ${kept}, attempts + 1, coalesce(first_attempt_at, now()), now(), reason, error
    from gone
  returning original_seq
)
select original_seq::text as seq
  from buried`,
    values: [JSON.stringify(burials)],
  }
}
