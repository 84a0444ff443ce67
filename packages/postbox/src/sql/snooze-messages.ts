import { amongRecords } from './fence.ts'
import type { Names } from './names.ts'
import type { Release } from './release-leases.ts'
import type { Statement } from './statement.ts'
import { type PutBack, takingNames } from './take-names.ts'

export interface Snooze extends Release {
  readonly delayMs: number
}

/**
 * Puts messages back for later, as if they had not been delivered: neither an attempt nor a delivery is counted. Fenced: only the holder of
 * the lease may write. The delay is added to the database's clock. `takeNames`: timers take their names back.
 * Returns the seqs written; one that is missing had lost its lease.
 */
export function snoozeMessages(
  names: Names,
  batch: readonly Snooze[],
  takeNames: boolean,
): Statement<{ readonly seq: string }, PutBack<Snooze>> {
  const taking = takingNames(names, takeNames)
  return {
    name: 'snooze_messages',
    text: `
with ${taking.patience}snoozed as (
  update ${names.messages} as m
     set due_at = now() + make_interval(secs => s."delayMs" / 1000),
         deliveries = s."deliveriesBefore",
         lease_token = null,
         leased_until = null${taking.set}
    from ${taking.from}jsonb_to_recordset($1::text::jsonb)
      as s(seq bigint, token uuid, "deliveriesBefore" int, "delayMs" float8)
   where m.seq = s.seq
     and m.lease_token = s.token
     and ${amongRecords}
  returning m.seq
)
select seq::text as seq
  from snoozed`,
    values: [JSON.stringify(batch)],
    input: { batch, takeNames },
  }
}
