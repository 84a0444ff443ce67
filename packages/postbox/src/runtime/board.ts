import { isOrdered } from '../core/queues.ts'
import type { Demand, Found } from './claimer.ts'
import type { Dispatcher } from './dispatcher.ts'

/** A queue that is served. One dispatcher may serve several: each has an entry of its own. */
interface Served {
  readonly queue: string
  readonly dispatcher: Dispatcher
  /** The last claim came back full, a notification came, or a time has come: worth a look. */
  mayHaveMore: boolean
  /** When the next message is due, on the local clock; null: none waits. */
  nextDueAt: number | null
  /** It had no room when the others were swept. */
  missedSweep: boolean
  /** Nothing of it is delivered, until it is resumed. */
  isPaused: boolean
}

/** What is known of the queues: which may have something, and which have room for it. */
export interface Board {
  add(dispatcher: Dispatcher): void
  readonly size: number
  queues(): readonly string[]
  /** Those whose pause must not be overlooked: it may have ended, or something that was claimed waits to be started. */
  watched(): readonly string[]
  /** Gives back what was claimed of the queue and not started; nothing that is published to it, or becomes due, is worth a look. */
  pause(queue: string): void
  /** It may have anything. */
  resume(queue: string): void
  /** A queue that may have more has room enough for a claim. */
  readonly wantsLook: boolean
  /** Some queue has room. */
  readonly hasRoom: boolean
  /** Some queue has room that had none for the last sweep. */
  readonly missedSweep: boolean
  /** What to ask for: all queues that have room. From now on they have no more, unless somebody says so. */
  demands(isSweep: boolean): readonly Demand[]
  /** What to ask of one queue alone; null: it has no room, or is in the order of its keys. Whether it has more is as before. */
  demandOf(queue: string): Demand | null
  /** Queues of which a claim brought all it might, or which were published to meanwhile: we look at them anyway, so nobody need notify. */
  busy(found: readonly Found[]): readonly string[]
  /** Notes what a claim found, and gives it to the handlers. */
  take(found: readonly Found[]): void
  /** Gives to the handlers what was claimed of a queue without looking at all of it: nothing else is known of it. */
  takeFresh(fresh: Pick<Found, 'queue' | 'held'>): void
  /** Queues that have no more, as far as is known: whoever publishes to them has to wake us. Not those that are paused. */
  exhausted(): readonly string[]
  /** False: the queue is not served here, or is paused. */
  notified(queue: string): boolean
  mayAllHaveMore(): void
  /** A message of the queue will be due then. */
  dueAt(queue: string, at: number): void
  /** Queues whose next message is due may have more. */
  timeHasCome(now: number): void
  /** When the next message of any queue is due; never, when none waits. */
  nextDueAt(): number
  pollMs(): { readonly min: number; readonly max: number }
  /** Starts no handler any more: what was not started is given back. */
  close(): void
}

const longestPollMs = 3_600_000

export function createBoard(): Board {
  const queues = new Map<string, Served>()
  // Asked for with each handler that ends: not copied out of the map each time.
  const all: Served[] = []
  return {
    add(dispatcher) {
      for (const queue of dispatcher.subscription.queues) {
        const unknown = { mayHaveMore: true, nextDueAt: null, missedSweep: false, isPaused: false }
        const served = { queue, dispatcher, ...unknown }
        queues.set(queue, served)
        all.push(served)
      }
    },
    get size() {
      return queues.size
    },
    ...createHaste(queues),
    ...createPausing(queues, all),
    get wantsLook() {
      return all.some(({ dispatcher, mayHaveMore }) => mayHaveMore && dispatcher.wantsMore)
    },
    get hasRoom() {
      return all.some(({ dispatcher }) => dispatcher.room > 0)
    },
    get missedSweep() {
      return all.some(({ dispatcher, missedSweep }) => missedSweep && dispatcher.room > 0)
    },
    demands(isSweep) {
      if (isSweep) for (const served of all) served.missedSweep = served.dispatcher.room === 0
      const open = all.filter(({ dispatcher }) => dispatcher.room > 0)
      for (const served of open) served.mayHaveMore = false
      return open.map(demandOf)
    },
    busy: (found) => found.filter((one) => isBusy(one, queues.get(one.queue))).map(({ queue }) => queue),
    take(found) {
      for (const { queue, isFull, nextDueAt, held } of found) {
        const served = queues.get(queue)
        if (served === undefined) continue
        served.mayHaveMore ||= isFull
        served.nextDueAt = nextDueAt
        served.dispatcher.take(held)
      }
    },
    exhausted: () =>
      all.filter(({ mayHaveMore, isPaused }) => !mayHaveMore && !isPaused).map(({ queue }) => queue),
    notified(queue) {
      const served = queues.get(queue)
      if (served === undefined || served.isPaused) return false
      served.mayHaveMore = true
      return true
    },
    mayAllHaveMore() {
      for (const served of all) served.mayHaveMore = true
    },
    dueAt(queue, at) {
      const served = queues.get(queue)
      if (served === undefined || served.isPaused) return
      served.nextDueAt = Math.min(at, served.nextDueAt ?? at)
    },
    timeHasCome(now) {
      for (const served of all) {
        if (served.nextDueAt === null || served.nextDueAt > now) continue
        served.mayHaveMore = true
        served.nextDueAt = null
      }
    },
    nextDueAt: () =>
      all.reduce((least, served) => Math.min(least, served.nextDueAt ?? least), Number.POSITIVE_INFINITY),
    pollMs() {
      const bounds = all.map(({ dispatcher }) => dispatcher.subscription.settings.pollMs)
      return {
        min: Math.min(longestPollMs, ...bounds.map(({ min }) => min)),
        max: Math.min(longestPollMs, ...bounds.map(({ max }) => max)),
      }
    },
    close() {
      for (const dispatcher of new Set(all.map(({ dispatcher }) => dispatcher))) dispatcher.close()
    },
  }
}

/** The part of it that is about what is claimed before a look. */
function createHaste(queues: ReadonlyMap<string, Served>): Pick<Board, 'demandOf' | 'takeFresh'> {
  return {
    demandOf(queue) {
      const served = queues.get(queue)
      const demand = served === undefined || served.dispatcher.room === 0 ? null : demandOf(served)
      return demand?.isOrdered ? null : demand
    },
    takeFresh: ({ queue, held }) => queues.get(queue)?.dispatcher.take(held),
  }
}

/** The part of it that is about pauses. */
function createPausing(
  queues: ReadonlyMap<string, Served>,
  all: readonly Served[],
): Pick<Board, 'queues' | 'watched' | 'pause' | 'resume'> {
  return {
    queues: () => all.map(({ queue }) => queue),
    watched: () =>
      all.filter(({ isPaused, dispatcher }) => isPaused || dispatcher.waiting > 0).map(({ queue }) => queue),
    pause(queue) {
      const served = queues.get(queue)
      if (served === undefined) return
      served.isPaused = true
      served.mayHaveMore = false
      served.nextDueAt = null
      served.dispatcher.giveBack(queue)
    },
    resume(queue) {
      const served = queues.get(queue)
      if (served === undefined) return
      served.isPaused = false
      served.mayHaveMore = true
    },
  }
}

function isBusy({ isFull, held }: Found, served: Served | undefined): boolean {
  return isFull || (held.length > 0 && served?.mayHaveMore === true)
}

/** Queues that share their slots share the room, rounded up so that none of them starves: a few messages more than fit may wait. */
function demandOf({ queue, dispatcher: { subscription, room } }: Served): Demand {
  const share = Math.ceil(room / subscription.queues.length)
  const demand = { queue, room: share, leaseMs: subscription.settings.leaseMs }
  return isOrdered(subscription.rules.queues, queue) ? { ...demand, isOrdered: true } : demand
}
