import type { Held } from './held.ts'

/** Messages of ordered queues, each behind the one of its key that may start. */
export interface Lines {
  readonly waiting: number
  /** Those that may start: what is in no order, and the first of each key. The others stand in line. */
  firstOf(claimed: readonly Held[]): readonly Held[]
  hasNext(held: Held): boolean
  /** The first of a key has ended. The next one comes forward if it is gone, else all that stand behind it leave. */
  ended(held: Held, isGone: boolean): { readonly next: Held | undefined; readonly rest: readonly Held[] }
  /** Takes out what is of the queue. `firsts` of it will not start: whoever comes next of their keys is the first again. */
  remove(queue: string, firsts: readonly Held[]): readonly Held[]
  close(): readonly Held[]
}

// For keys that nobody stands behind: most of them, where there are many. One for all: nobody ever joins it.
const nobody: Held[] = []

export function createLines(): Lines {
  // By queue and key: a name made of both would have to be made five times for each message.
  const queues = new Map<string, Map<string | null, Held[]>>()
  let waiting = 0
  const keysOf = ({ lease: { queue } }: Held): Map<string | null, Held[]> => {
    const known = queues.get(queue)
    if (known !== undefined) return known
    const keys = new Map<string | null, Held[]>()
    queues.set(queue, keys)
    return keys
  }
  const lineOf = (held: Held): Held[] | undefined => queues.get(held.lease.queue)?.get(held.lease.key)
  const isFirst = (held: Held): boolean => {
    if (!held.lease.isOrdered) return true
    const line = lineOf(held)
    if (line === undefined) {
      keysOf(held).set(held.lease.key, nobody)
      return true
    }
    if (line === nobody) keysOf(held).set(held.lease.key, [held])
    else line.push(held)
    waiting += 1
    return false
  }
  const leave = (keys: ReadonlyMap<string | null, Held[]>): readonly Held[] => {
    const left = [...keys.values()].flatMap((line) => line.splice(0))
    waiting -= left.length
    return left
  }
  return {
    get waiting() {
      return waiting
    },
    firstOf: (claimed) => (claimed.some(({ lease }) => lease.isOrdered) ? claimed.filter(isFirst) : claimed),
    hasNext: (held) => (lineOf(held)?.length ?? 0) > 0,
    ended(held, isGone) {
      const line = lineOf(held) ?? nobody
      const next = isGone ? line.shift() : undefined
      if (next === undefined) queues.get(held.lease.queue)?.delete(held.lease.key)
      waiting -= next === undefined ? line.length : 1
      return { next, rest: next === undefined ? line : nobody }
    },
    remove(queue, firsts) {
      const removed = leave(queues.get(queue) ?? new Map())
      for (const held of firsts) if (held.lease.isOrdered) keysOf(held).delete(held.lease.key)
      return removed
    },
    close: () => [...queues.values()].flatMap(leave),
  }
}

/** Takes out what is of the queue, and leaves the others in their order. */
export function takeOf(waiting: Held[], queue: string): readonly Held[] {
  const taken = waiting.filter(({ lease }) => lease.queue === queue)
  const left = waiting.filter(({ lease }) => lease.queue !== queue)
  waiting.splice(0, waiting.length, ...left)
  return taken
}
