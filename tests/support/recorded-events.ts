// What the parts of an outbox told, in its order.
import type { Teller, Told } from '../../packages/postbox/src/core/events.ts'

export interface RecordedEvents {
  readonly teller: Teller
  readonly told: readonly Told[]
}

/** Notes everything that is told. `isHeard: false`: as if nobody took events that are not logged. */
export function recordedEvents({ isHeard = true } = {}): RecordedEvents {
  const told: Told[] = []
  return { teller: { tell: (event) => void told.push(event), isHeard }, told }
}
