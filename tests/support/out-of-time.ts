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
  let timeIsOver = (): void => {}
  const over = new Promise<void>((resolve) => {
    timeIsOver = resolve
  })
  const sleep: Clock['sleep'] = (ms, ended) => {
    const slept = systemClock.sleep(ms, ended)
    return ms === timeoutMs ? Promise.race([over, slept]) : slept
  }
  const clock: Clock = { now: systemClock.now, sleep }
  const options = { [Symbol.for('postbox.internals')]: { clock, ...internals } } as OutboxOptions
  return { options, timeIsOver }
}
