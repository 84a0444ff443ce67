import type { OfMessage } from './events.ts'
import type { Lease } from './lease.ts'

/** What every event about a message says; whoever handles its queue is added on the way. */
export function ofMessage({ queue, id, seq, attempt, deliveries }: Lease): Omit<OfMessage, 'handler'> {
  return { queue, id, seq, attempt, deliveries }
}
