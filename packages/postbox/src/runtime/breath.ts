import type { Clock } from './clock.ts'

/** Lets the event loop go on between handlers. */
export interface Breath {
  /** Whether one more may start in this turn of the event loop. If not, `again` is called in the next. */
  mayStart(again: () => void): boolean
  /** Something was answered: another turn has begun, whatever timers a test has put in the place of the real ones. */
  turned(): void
}

/**
 * So many handlers start in one turn. Those that wait for nothing end in it, too, and the next ones start: a thousand of them kept the answer of a flush
 * waiting for 15 ms, and the claim behind it, while the server had nothing to do. Drains of such handlers gain a tenth; less than thirty a turn cost more than they gain.
 */
const mostStarts = 64

/** With a clock that knows no turns, as many as like. */
export function createBreath({ nextTurn }: Pick<Clock, 'nextTurn'>): Breath {
  const waiting = new Set<() => void>()
  let starts = 0
  let isAwaited = false
  const turned = (): void => {
    starts = 0
    const all = [...waiting]
    waiting.clear()
    for (const again of all) again()
  }
  const next = (): void => {
    isAwaited = false
    turned()
  }
  const awaitTurn = (wait: NonNullable<Clock['nextTurn']>): void => {
    if (isAwaited) return
    isAwaited = true
    wait(next)
  }
  return {
    mayStart(again) {
      if (nextTurn === undefined) return true
      awaitTurn(nextTurn)
      if (starts < mostStarts) {
        starts++
        return true
      }
      waiting.add(again)
      return false
    },
    turned,
  }
}
