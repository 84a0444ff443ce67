import type { Clock } from './clock.ts'

const woken = 'woken'

/** A sleep that can be cut short. */
export interface Sleeper {
  /** When it will wake by itself; null: it is awake. */
  readonly wakesAt: number | null
  /** True: it was woken. False: the time has come. */
  sleepUntil(at: number): Promise<boolean>
  wake(): void
}

export function createSleeper(clock: Clock): Sleeper {
  let current: AbortController | null = null
  let wakesAt: number | null = null
  return {
    get wakesAt() {
      return wakesAt
    },
    async sleepUntil(at) {
      const own = new AbortController()
      current = own
      wakesAt = at
      do await clock.sleep(Math.max(0, Math.ceil(at - clock.now())), own.signal)
      while (isNearly(at, clock) && !own.signal.aborted)
      current = null
      wakesAt = null
      return own.signal.aborted
    },
    // Once: every handler that ends may want to wake it before it gets up. With a reason, since making one up costs a stack trace.
    wake() {
      current?.abort(woken)
      current = null
      wakesAt = null
    },
  }
}

/** Node's timers may end a sleep early, by less than a millisecond, and a claim that comes before a message is due finds nothing. A clock that ends it earlier than that is to be believed. */
function isNearly(at: number, clock: Clock): boolean {
  const left = at - clock.now()
  return left > 0 && left < 1
}
