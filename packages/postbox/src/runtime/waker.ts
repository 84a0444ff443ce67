// Path 3/7 · wake: an elapsed pace → "look now".
import { pollDelayMs } from '../core/pacing.ts'
import type { Clock } from './clock.ts'

export interface Waker {
  /** Waits until it is worth looking again: longer with each empty look, up to the ladder's end. */
  next(halt: AbortSignal): Promise<void>
  /** There was work: start at the bottom of the ladder again. */
  reset(): void
}

export function createWaker(pollMs: { readonly min: number; readonly max: number }, clock: Clock): Waker {
  let emptyClaims = 0
  return {
    next: (halt) => clock.sleep(pollDelayMs(++emptyClaims, pollMs, Math.random()), halt),
    reset: () => {
      emptyClaims = 0
    },
  }
}
