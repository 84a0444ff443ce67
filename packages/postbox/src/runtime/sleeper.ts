import type { Clock } from './clock.ts'

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
      await clock.sleep(Math.max(0, Math.ceil(at - clock.now())), own.signal)
      current = null
      wakesAt = null
      return own.signal.aborted
    },
    wake: () => current?.abort(),
  }
}
