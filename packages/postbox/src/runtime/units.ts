import { deliveriesWithoutOutcome } from '../core/settlement.ts'
import type { Clock } from './clock.ts'
import type { Held } from './held.ts'
import type { Subscription } from './subscription.ts'

/** What waits for a slot, in the portions that one run of the handler takes. */
export interface Units {
  readonly waiting: number
  add(claimed: readonly Held[]): void
  /** The next portion; null: there is none, or it is worth waiting for more of it. */
  next(): readonly Held[] | null
  /** Ends the waiting; what waits comes back. */
  close(): readonly Held[]
}

/** `ready` is called when a batch has waited long enough. */
export function createUnits(run: Subscription['run'], clock: Clock, ready: () => void): Units {
  return run.kind === 'batch' ? createBatches(run, clock, ready) : createSingles()
}

function createSingles(): Units {
  const waiting: Held[] = []
  return {
    get waiting() {
      return waiting.length
    },
    add: (claimed) => void waiting.push(...claimed),
    next() {
      const held = waiting.shift()
      return held === undefined ? null : [held]
    },
    close: () => waiting.splice(0),
  }
}

/**
 * As many as fit into a batch, or as have come within its time. A message that failed before, or whose process died, comes alone: one that
 * spoils its batch is found, and its neighbours are not spoilt again.
 */
function createBatches(
  { size, maxWaitMs }: { readonly size: number; readonly maxWaitMs: number },
  clock: Clock,
  ready: () => void,
): Units {
  const suspects: Held[] = []
  const fresh: Held[] = []
  /** Rings when the first of those that wait has waited long enough. */
  let alarm: AbortController | null = null
  let isLate = maxWaitMs === 0

  const setAlarm = (): void => {
    if (alarm !== null || isLate || fresh.length === 0) return
    const own = new AbortController()
    alarm = own
    void clock.sleep(maxWaitMs, own.signal).then(() => {
      if (own.signal.aborted) return
      isLate = true
      ready()
    })
  }
  const clearAlarm = (): void => {
    alarm?.abort()
    alarm = null
    isLate = maxWaitMs === 0
  }
  return {
    get waiting() {
      return suspects.length + fresh.length
    },
    add(claimed) {
      for (const held of claimed) (isSuspect(held) ? suspects : fresh).push(held)
      setAlarm()
    },
    next() {
      const suspect = suspects.shift()
      if (suspect !== undefined) return [suspect]
      if (fresh.length === 0 || (fresh.length < size && !isLate)) return null
      const unit = fresh.splice(0, size)
      if (fresh.length === 0) clearAlarm()
      return unit
    },
    close() {
      clearAlarm()
      return [...suspects.splice(0), ...fresh.splice(0)]
    },
  }
}

function isSuspect({ lease }: Held): boolean {
  return lease.attempt > 1 || deliveriesWithoutOutcome(lease) > 0
}
