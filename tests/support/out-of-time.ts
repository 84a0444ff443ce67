// Handlers that are out of time when the test says so, and not when a machine is slow.
import type { OutboxOptions } from 'postbox'
import { type Clock, systemClock } from '../../packages/postbox/src/runtime/clock.ts'

/** No handler takes so long by itself. */
export const timeoutMs = 7_777_777

export interface EndOfTime {
  /** For createOutbox. */
  readonly options: OutboxOptions
  /** From now on every handler with this `timeoutMs` is out of time. */
  timeIsOver(): void
}

export function endOfTime(internals: object = {}): EndOfTime {
  const over = new AbortController()
  // One sleep may be for many handlers, and then for what is left of the time. Nothing else sleeps for an hour.
  const sleep: Clock['sleep'] = (ms, ended) =>
    systemClock.sleep(ms, ms > timeoutMs / 2 ? AbortSignal.any([ended, over.signal]) : ended)
  const clock: Clock = { now: systemClock.now, sleep }
  const options = { [Symbol.for('postbox.internals')]: { clock, ...internals } } as OutboxOptions
  return { options, timeIsOver: () => over.abort() }
}
