import { deliveriesWithoutOutcome, isSuspect } from '../core/settlement.ts'
import type { Clock } from './clock.ts'
import type { Held } from './held.ts'
import { createLines, takeOf } from './lines.ts'
import type { Subscription } from './subscription.ts'

/** What waits for a slot, in the portions that one run of the handler takes. */
export interface Units {
  readonly waiting: number
  /** Those of them that need only a slot: the others wait for one of their key. */
  readonly startable: number
  /** Some of what waits has to be run alone. */
  readonly hasSuspects: boolean
  add(claimed: readonly Held[]): void
  /** The next portion of what is no suspect; null: there is none, or it is worth waiting for more of it. */
  next(): readonly Held[] | null
  /** The next one to be run alone; null: there is none. */
  nextSuspect(): Held | null
  /** Whether another of its key waits for it. */
  hasNext(held: Held): boolean
  /**
   * It is gone, or it is not. The next of its key may start; or those that wait for it are not ours any more, and come back. `isOver`: none waits here.
   */
  ended(held: Held, isGone: boolean): { readonly rest: readonly Held[]; readonly isOver: boolean }
  /** What waits of the queue comes back. */
  remove(queue: string): readonly Held[]
  /** Ends the waiting; what waits comes back. */
  close(): readonly Held[]
}

/** `ready` is called when a batch has waited long enough. Of the keys of an ordered queue only the first may start: the others stand in line behind it. */
export function createUnits(run: Subscription['run'], clock: Clock, ready: () => void): Units {
  const others = run.kind === 'batch' ? createBatches(run, clock, ready) : createSingles()
  const suspects: Held[] = []
  const lines = createLines()
  const enter = (helds: readonly Held[]): void => {
    const found = helds.filter(({ lease }) => isSuspect(lease))
    others.add(found.length === 0 ? helds : helds.filter(({ lease }) => !isSuspect(lease)))
    // Least suspected first: should the process die again, they are done.
    if (found.length > 0) suspects.push(...found) && suspects.sort(bySuspicion)
  }
  return {
    get waiting() {
      return suspects.length + others.waiting + lines.waiting
    },
    get startable() {
      return suspects.length + others.waiting
    },
    get hasSuspects() {
      return suspects.length > 0
    },
    add: (claimed) => enter(lines.firstOf(claimed)),
    next: others.next,
    nextSuspect: () => suspects.shift() ?? null,
    hasNext: lines.hasNext,
    ended(held, isGone) {
      const { next, rest } = lines.ended(held, isGone)
      if (next !== undefined) enter([next])
      return { rest, isOver: isGone && next === undefined }
    },
    remove(queue) {
      const removed = [...takeOf(suspects, queue), ...others.remove(queue)]
      return [...removed, ...lines.remove(queue, removed)]
    },
    close: () => [...suspects.splice(0), ...others.close(), ...lines.close()],
  }
}

function bySuspicion(a: Held, b: Held): number {
  return deliveriesWithoutOutcome(a.lease) - deliveriesWithoutOutcome(b.lease)
}

type Portions = Pick<Units, 'waiting' | 'add' | 'next' | 'remove' | 'close'>

function createSingles(): Portions {
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
    remove: (queue) => takeOf(waiting, queue),
    close: () => waiting.splice(0),
  }
}

/**
 * As many as fit into a batch, or as have come within its time. A message that failed before comes alone: one that spoils its batch
 * is found, and its neighbours are not spoilt again.
 */
function createBatches(
  { size, maxWaitMs }: { readonly size: number; readonly maxWaitMs: number },
  clock: Clock,
  ready: () => void,
): Portions {
  const failed: Held[] = []
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
      return failed.length + fresh.length
    },
    add(claimed) {
      for (const held of claimed) (held.lease.attempt > 1 ? failed : fresh).push(held)
      setAlarm()
    },
    next() {
      const one = failed.shift()
      if (one !== undefined) return [one]
      if (fresh.length === 0 || (fresh.length < size && !isLate)) return null
      const unit = fresh.splice(0, size)
      if (fresh.length === 0) clearAlarm()
      return unit
    },
    remove(queue) {
      const removed = [...takeOf(failed, queue), ...takeOf(fresh, queue)]
      if (fresh.length === 0) clearAlarm()
      return removed
    },
    close() {
      clearAlarm()
      return [...failed.splice(0), ...fresh.splice(0)]
    },
  }
}
