// Whether a subscriber sleeps so that only somebody's word can wake it.
import type { OutboxOptions } from 'postbox'
import { type Clock, systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import { type Signal, signal } from '../support/signals.ts'

/** Who polls so seldom is woken by somebody, or not at all within a test. */
export const noPolling = { min: 600_000, max: 600_000 }

// Of listener.ts, of either build: it sleeps so long for the first time when it has been proved to hear.
const heartbeatMs = 30_000

export interface SleepWatch {
  /** For the outbox that is watched. */
  readonly options: OutboxOptions
  /** It hears, has looked at everything since, and sleeps until somebody wakes it. */
  readonly asleep: Signal<void>
  /** It does so now. */
  isAsleep(): boolean
}

/** For subscribers that listen, and have `noPolling`. */
export function watchSleep(): SleepWatch {
  const asleep = signal('the subscriber to hear, and to sleep')
  let hears = false
  let sleeping = 0
  const clock: Clock = {
    now: systemClock.now,
    sleep(ms, woken) {
      if (ms === heartbeatMs) hears = true
      const isLong = hears && ms > noPolling.max / 2
      if (!isLong) return systemClock.sleep(ms, woken)
      asleep.send()
      sleeping++
      return systemClock.sleep(ms, woken).finally(() => sleeping--)
    },
  }
  const internals = { [Symbol.for('postbox.internals')]: { clock } }
  return { options: internals, asleep, isAsleep: () => sleeping > 0 }
}
