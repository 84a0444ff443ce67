const startShare = 1 / 3
const latestStart = 0.5

/**
 * A rate without the start: it counts from when a third is done, so that nobody is charged with connecting, planning and compiling: a drain gains speed for its first 50,000
 * messages, four processes together for their first 100,000. Where the first that is seen is more than half of all, there is nothing left to be measured, and all of it counts.
 */
export class Stretch {
  readonly #all: number
  #from: { readonly done: number; readonly ms: number }
  #hasBegun = false

  constructor(all: number, startedMs: number) {
    this.#all = all
    this.#from = { done: 0, ms: startedMs }
  }

  see(done: number, ms: number): void {
    if (this.#hasBegun || done < this.#all * startShare) return
    this.#hasBegun = true
    if (done <= this.#all * latestStart) this.#from = { done, ms }
  }

  /** When all is done. */
  perSecond(ms: number): number {
    return ((this.#all - this.#from.done) * 1_000) / (ms - this.#from.ms)
  }
}
