/** Where a row lies in its lane: by time, then by seq. Fresh rows have no time. */
export interface Place {
  readonly at: number
  readonly seq: number
}

/** Seqs in the order of their places, as an index has them. */
export interface Order {
  add(place: Place): void
  remove(seq: number): void
  /** From the first place above this one on. Not while the order changes. */
  above(place: Place): Iterable<number>
}

interface Entry extends Place {
  isGone: boolean
}

/**
 * A sorted list in which nearly everything is added at the end. What is removed leaves a gap, and gaps are closed when they are most of
 * it: closed one by one, a queue of 100,000 would move all that lies behind for each message that is done.
 */
export function createOrder(): Order {
  let entries: Entry[] = []
  const live = new Map<number, Entry>()
  return {
    add({ at, seq }) {
      const entry = { at, seq, isGone: false }
      live.set(seq, entry)
      const last = entries.at(-1)
      if (last === undefined || compare(last, entry) < 0) entries.push(entry)
      else entries.splice(firstAbove(entries, entry), 0, entry)
    },
    remove(seq) {
      const entry = live.get(seq)
      if (entry === undefined) return
      entry.isGone = true
      live.delete(seq)
      if (entries.length > 2 * live.size + 32) entries = entries.filter(({ isGone }) => !isGone)
    },
    *above(place) {
      for (let index = firstAbove(entries, place); index < entries.length; index++) {
        const entry = entries[index]
        if (entry !== undefined && !entry.isGone) yield entry.seq
      }
    },
  }
}

export function compare(a: Place, b: Place): number {
  return a.at - b.at || a.seq - b.seq
}

function firstAbove(entries: readonly Place[], place: Place): number {
  let [low, high] = [0, entries.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    const entry = entries[middle]
    if (entry !== undefined && compare(entry, place) <= 0) low = middle + 1
    else high = middle
  }
  return low
}
