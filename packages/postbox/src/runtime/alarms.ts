import { AsyncResource } from 'node:async_hooks'
import type { Clock } from './clock.ts'
import { createSleeper } from './sleeper.ts'

/** Rings when the time of something is over. */
export interface Alarms {
  set(ms: number, ring: () => void): Alarm
  /** It need not ring any more. */
  clear(alarm: Alarm): void
}

export interface Alarm {
  readonly at: number
  ring(): void
}

/** One sleep for all of them, and none while none is set: a timer for each delivery, which hardly ever rings, would cost more than the rest of it. */
export function createAlarms(clock: Clock): Alarms {
  const alarms = new Set<Alarm>()
  const sleeper = createSleeper(clock)
  let isWatching = false
  const watch = async (): Promise<void> => {
    isWatching = true
    while (alarms.size > 0) {
      const until = earliestOf(alarms)
      const isWoken = await sleeper.sleepUntil(until)
      // A sleep that has ended by itself says that the time has come, whatever fraction of a millisecond timers are early by.
      const now = isWoken ? clock.now() : Math.max(until, clock.now())
      for (const alarm of alarms) {
        if (alarm.at > now) continue
        alarms.delete(alarm)
        alarm.ring()
      }
    }
    isWatching = false
  }
  return {
    set(ms, ring) {
      // The one sleep is in the context of who set the first of them: that is nobody else's.
      const own = new AsyncResource('postbox alarm', { requireManualDestroy: true })
      const alarm = { at: clock.now() + ms, ring: () => own.runInAsyncScope(ring) }
      alarms.add(alarm)
      if (!isWatching) void watch()
      else if (sleeper.wakesAt !== null && alarm.at < sleeper.wakesAt) sleeper.wake()
      return alarm
    },
    clear(alarm) {
      alarms.delete(alarm)
      if (alarms.size === 0) sleeper.wake()
    },
  }
}

function earliestOf(alarms: Iterable<Alarm>): number {
  let earliest = Number.POSITIVE_INFINITY
  for (const { at } of alarms) earliest = Math.min(earliest, at)
  return earliest
}
