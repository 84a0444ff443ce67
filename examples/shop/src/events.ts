import type { LogEntry, OutboxEvent } from 'postbox'
import type { Tally } from './shop.ts'

/** The outbox tells everything that happens to it; the screen wants a few of those things. */
export function countEvents(tally: Tally): (event: OutboxEvent) => void {
  return (event) => {
    if (event.kind === 'acked') tally.delivered += 1
    if (event.kind === 'retried') {
      tally.retried += 1
      tally.lastFailure = String(event.error)
    }
    if (event.kind === 'dead') {
      tally.died += 1
      tally.lastDeath = String(event.error)
    }
  }
}

/** The log is the same stream, printed. What goes wrong on purpose in this shop is on the screen already. */
export function isNews({ event }: LogEntry): boolean {
  return event !== 'retried' && event !== 'dead'
}
