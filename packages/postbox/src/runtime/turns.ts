/** One piece of work at a time, in the order of asking: what a connection can do. */
export interface Turns {
  take<T>(work: () => Promise<T>): Promise<T>
  /** Resolves when everything that was asked for so far has ended, well or not. */
  ended(): Promise<void>
}

export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve()
  return {
    take(work) {
      const turn = last.then(work)
      last = turn.catch(() => {})
      return turn
    },
    ended: async () => void (await last),
  }
}
