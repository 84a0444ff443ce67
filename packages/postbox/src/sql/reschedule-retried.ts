import { amongRecords, type Fence } from './fence.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'
import { type PutBack, takingNames } from './take-names.ts'

export interface Reschedule extends Fence {
  readonly delayMs: number
  readonly error: string | null
}

/**
 * Puts failed messages back, due later. Fenced: only the holder of the lease may write. The delay is added to the
 * database's clock, so a skewed worker cannot move it. `takeNames`: timers take their names back.
 * Returns the seqs written; one that is missing had lost its lease.
 */
export function rescheduleRetried(
  names: Names,
  batch: readonly Reschedule[],
  takeNames: boolean,
): Statement<{ readonly seq: string }, PutBack<Reschedule>> {
  const taking = takingNames(names, takeNames)
  return {
    name: 'reschedule_retried',
    text: `
with ${taking.patience}rescheduled as (
  update ${names.messages} as m
     set due_at = now() + make_interval(secs => s."delayMs" / 1000),
         attempts = m.attempts + 1,
         first_attempt_at = coalesce(m.first_attempt_at, now()),
         last_attempt_at = now(),
         last_error = s.error,
         lease_token = null,
         leased_until = null${taking.set}
    from ${taking.from}jsonb_to_recordset($1::text::jsonb) as s(seq bigint, token uuid, "delayMs" float8, error text)
   where m.seq = s.seq
     and m.lease_token = s.token
     and ${amongRecords}
  returning m.seq
)
select seq::text as seq
  from rescheduled`,
    values: [JSON.stringify(batch)],
    input: { batch, takeNames },
  }
}
