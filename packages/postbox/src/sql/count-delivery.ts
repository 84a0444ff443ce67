import type { Fence } from './fence.ts'
import type { Names } from './names.ts'
import type { Statement } from './statement.ts'

export interface CountedDelivery extends Fence {
  /** How many there are with this one. */
  readonly deliveries: number
}

/**
 * Counts the delivery of a suspect, right before its handler is run: its claim has not (docs/decisions/0036). Fenced: only the holder may.
 * Sent twice it counts once. It has to outlive this process, not the server: synchronous_commit is off for its transaction.
 * Returns the seq; nothing: its lease is lost.
 */
export function countDelivery(
  names: Names,
  { seq, token, deliveries }: CountedDelivery,
): Statement<{ readonly seq: string }, CountedDelivery> {
  return {
    name: 'count_delivery',
    text: `
with quick as materialized (
  select set_config('synchronous_commit', 'off', true)
)
update ${names.messages} as m
   set deliveries = $3::int
  from quick
 where m.seq = $1::bigint
   and m.lease_token = $2::uuid
returning m.seq::text as seq`,
    values: [seq, token, deliveries],
    input: { seq, token, deliveries },
  }
}
