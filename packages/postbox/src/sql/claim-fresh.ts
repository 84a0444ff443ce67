import { isHeld, type MessageRow } from './claim-messages.ts'
import type { Names } from './names.ts'
import { plannedAnew } from './planned-anew.ts'
import type { Statement } from './statement.ts'

export interface FreshInput {
  readonly token: string
  readonly queue: string
  /** How many rows at most. */
  readonly room: number
  readonly leaseMs: number
  /** Rows above this seq. */
  readonly after: string
  /** Messages of a newer generation are left where they are; null: none is. */
  readonly generation?: number | null
}

export interface FreshRow extends MessageRow {
  /** The database's clock, in milliseconds since 1970. */
  readonly now: string
}

/**
 * Takes what is fresh in one queue, and nothing else: a third of what `claimMessages` takes the server, most of which is planning. It is what a sleeper that was
 * woken sends before that, so that whoever waits for the one message that was published does not wait for all the questions that go with a claim.
 *
 * Its rows are found and leased as there, and what holds a queue holds it here: paused, or in the order of its keys. What had been delivered before, or has a
 * lease that ended, is left to the claim that comes next, which can tell a suspect.
 *
 * Everything comes back as text, in physical order.
 */
export function claimFresh(names: Names, input: FreshInput): Statement<FreshRow, FreshInput> {
  const { token, queue, room, leaseMs, after, generation = null } = input
  const text = (anew: string): string => `
update ${names.messages} as m
   set lease_token = $4::uuid,
       leased_until = now() + make_interval(secs => $5::float8 / 1000),
       deliveries = m.deliveries + 1,
       timer_id = null,
       fired_timer_id = coalesce(m.timer_id, m.fired_timer_id)
 where m.ctid = any(array(
         select m.ctid
           from ${names.messages} as m, generate_series((select 1), 1) as once
          where (m.queue, m.seq) > ($1::text, $2::bigint)
            and (m.queue, m.seq) <= ($1::text, 9223372036854775807)
            and m.due_at is null
            and m.lease_token is null
            and m.deliveries <= m.attempts${generation === null ? '' : '\n            and (m.generation is null or m.generation <= $6::bigint)'}
          order by m.queue, m.seq
          limit $3::int
            for update of m skip locked))
   and not exists (select from ${names.queues} as q where q.name = $1::text and ${isHeld})
   and (select set_config('synchronous_commit', 'off', true)) = 'off'${anew}
returning 'message' as kind,
       m.queue,
       m.id::text as id,
       m.seq::text as seq,
       coalesce(m.key, m.later_key) as key,
       m.fired_timer_id as timer,
       encode(m.body, 'base64') as body,
       m.headers::text as headers,
       m.attempts::text as attempts,
       m.deliveries::text as deliveries,
       'false' as suspect,
       (extract(epoch from m.created_at) * 1000)::text as created,
       (extract(epoch from m.first_attempt_at) * 1000)::text as first,
       m.generation::text as generation,
       null as due,
       (extract(epoch from now()) * 1000)::text as now`
  return {
    name: 'claim_fresh',
    text: text(''),
    keptText: text(`\n   and ${plannedAnew('$3::int')}`),
    values: [queue, after, room, token, leaseMs, ...(generation === null ? [] : [generation])],
    input,
  }
}
