import type { Costs } from './plan.ts'

/** A quick run has three minutes, of which compiling, the server and the report take some. */
export const quickSeconds = { measure: 145, end: 160 }

/** With less than this share of the messages another round is not worth it. */
const worthwhile = 0.5
/** With less the first round has nothing to say. */
const least = 0.05

/** Knows its end, and gives fewer messages rather than overrunning it. How slow the machine is it learns from what has been run. */
export class Budget {
  readonly #seconds: number
  readonly #clock: () => number
  #expected = 0
  #taken = 0

  /** The clock tells the seconds since the beginning. */
  constructor(seconds: number, clock: () => number) {
    this.#seconds = seconds
    this.#clock = clock
  }

  learn(expected: number, taken: number): void {
    this.#expected += expected
    this.#taken += taken
  }

  /**
   * What share of their messages the contenders of the next heat are to have, so that there is time for all the others. null: no time for the round that it begins. The first
   * round is run in any case, and a round that was begun is finished.
   */
  shareFor(heats: readonly Costs[], isBegun: boolean): number | null {
    const [next] = heats
    if (next === undefined) return null
    const rounds = [...new Set(heats.map(({ round }) => round))].toSorted((a, b) => b - a)
    for (const last of rounds) {
      const share = this.#shareOf(heats.filter(({ round }) => round <= last))
      if (share >= worthwhile) return Math.min(1, share)
      if (last === next.round) return next.round === 0 || isBegun ? Math.max(least, share) : null
    }
    return null
  }

  #shareOf(heats: readonly Costs[]): number {
    const slowness = this.#expected === 0 ? 1 : this.#taken / this.#expected
    const sum = (pick: (costs: Costs) => number): number =>
      heats.reduce((total, costs) => total + pick(costs), 0) * slowness
    const left = this.#seconds - this.#clock() - sum(({ starts }) => starts)
    return left / sum(({ work }) => work)
  }
}
