import type { Outcome } from '../core/outcome.ts'
import { type Settlement, settle } from '../core/settlement.ts'
import type { SubscribeSettings } from '../core/subscribe-options.ts'
import type { Held } from './held.ts'
import type { Settler } from './settler.ts'

/** Everything that was claimed and whose end is not yet written: waiting for a slot, running, or waiting to be written. */
export interface Hand {
  readonly held: ReadonlySet<Held>
  hold(claimed: readonly Held[]): void
  /** A handler ended: writes what that makes of the row, and lets go of it. */
  finished(one: Held, outcome: Outcome): void
  /** It was never started: gives it back. */
  unstarted(one: Held): void
  /** Resolves when nothing is in hand. */
  untilEmpty(): Promise<void>
}

export interface HandParts {
  readonly settler: Pick<Settler, 'settle'>
  /** The options of the subscription that a message belongs to. */
  settingsOf(queue: string): SubscribeSettings
  /** Nothing is in hand any more. */
  emptied(): void
}

export function createHand({ settler, settingsOf, emptied }: HandParts): Hand {
  const held = new Set<Held>()
  const waiting: (() => void)[] = []

  const letGo = (one: Held): void => {
    held.delete(one)
    if (held.size > 0) return
    for (const tell of waiting.splice(0)) tell()
    emptied()
  }
  const write = (one: Held, settlement: Settlement): void => {
    // Nothing may be written for what somebody else has: it was reported when it was lost.
    const { flush, maxBatch } = settingsOf(one.lease.queue)
    const written = one.isLost
      ? Promise.resolve()
      : settler.settle(settlement, flush === 'each' ? 1 : maxBatch)
    void written.then(() => letGo(one))
  }
  return {
    held,
    hold(claimed) {
      for (const one of claimed) held.add(one)
    },
    finished: (one, outcome) => write(one, settle(one.lease, outcome, Math.random())),
    unstarted: (one) => write(one, { write: 'release', lease: one.lease }),
    untilEmpty: () =>
      new Promise((resolve) => {
        if (held.size === 0) resolve()
        else waiting.push(resolve)
      }),
  }
}
