import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

/** `fresh`: rows never delayed, by place. `due`: timers and retries whose time has come, by time. */
export type Lane = 'fresh' | 'due'

export interface ClaimInput {
  readonly queue: string
  readonly lane: Lane
  readonly limit: number
  /** One for the whole claim: it proves who may settle these rows. */
  readonly token: string
  readonly leaseMs: number
}

export interface ClaimedRow {
  readonly id: string
  readonly seq: string
  readonly queue: string
  readonly key: string | null
  readonly body: string
  readonly headers: string | null
  readonly attempts: string
  readonly deliveries: string
  readonly created: string
  readonly generation: string | null
}

// A row comparison, not `queue = $1`: with equality the planner may walk the primary key through other queues' rows
// (393 ms against 0.7 for 500 rows behind a million).
const lanes: Record<Lane, string> = {
  fresh: `(queue, seq) > ($1::text, 0) and (queue, seq) <= ($1::text, 9223372036854775807)
       and due_at is null
       and (lease_token is null or leased_until < now())
     order by queue, seq`,
  due: `(queue, due_at) >= ($1::text, '-infinity') and (queue, due_at) <= ($1::text, now())
       and due_at is not null
       and (lease_token is null or leased_until < now())
     order by queue, due_at, seq`,
}

/**
 * Takes up to `limit` rows of a lane: nobody else may settle them until the lease ends. Rows that others are claiming are
 * stepped over. No index names a lease column, so the update stays on its page (HOT). Deliveries are counted here, by the
 * claim itself: a message that kills its process must still use one up. Returns the rows in physical order, everything as text.
 */
export function claimMessages(names: Names, input: ClaimInput): Statement<ClaimedRow> {
  return {
    name: `claim_${input.lane}`,
    text: `
update ${names.messages}
   set lease_token = $2::uuid,
       leased_until = now() + make_interval(secs => $3::float8 / 1000),
       deliveries = deliveries + 1
 where ctid = any(array(
   select ctid
     from ${names.messages}
    where ${lanes[input.lane]}
    limit $4::int
      for update skip locked))
returning id::text as id,
          seq::text as seq,
          queue,
          key,
          encode(body, 'base64') as body,
          headers::text as headers,
          attempts::text as attempts,
          deliveries::text as deliveries,
          (extract(epoch from created_at) * 1000)::text as created,
          generation::text as generation`,
    values: [input.queue, input.token, input.leaseMs, input.limit],
  }
}
