/** Chance that can be had again from its seed. */
export interface Random {
  /** A whole number from 0 on, below `limit`. */
  below(limit: number): number
  isBelow(probability: number): boolean
  pick<T>(from: readonly T[]): T
}

/** mulberry32: 32 bits of state, and good enough to choose with. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    below,
    isBelow: (probability) => next() < probability,
    pick: (from) => from[below(from.length)]!,
  }
}
