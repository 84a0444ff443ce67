/** Lets the event loop go on between handlers. */
export interface Breath {
  /** Whether one more may start in this turn of the event loop. If not, `again` is called in the next. */
  mayStart(again: () => void): boolean
}

/**
 * So many handlers start in one turn. Those that wait for nothing end in it, too, and the next ones start: a thousand of them kept the answer of a flush
 * waiting for 15 ms, and the claim behind it, while the server had nothing to do. Drains of such handlers gain a tenth; less than thirty a turn cost more than they gain.
 */
const mostStarts = 64

// As it was when this was loaded: tests put one in its place that waits for them.
const inNextTurn = setImmediate

export function createBreath(): Breath {
  const waiting = new Set<() => void>()
  let starts = 0
  const next = (): void => {
    starts = 0
    const all = [...waiting]
    waiting.clear()
    for (const again of all) again()
  }
  return {
    mayStart(again) {
      if (starts === 0) inNextTurn(next)
      if (starts < mostStarts) {
        starts++
        return true
      }
      waiting.add(again)
      return false
    },
  }
}
