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
  readonly settler: Pick<Settler, 'settle' | 'countLost'>
  /** The options of the subscription that a message belongs to. */
  settingsOf(queue: string): SubscribeSettings
  /** A message was put back, to be due in so many milliseconds. */
  putBack(queue: string, delayMs: number): void
  /** Nothing is in hand any more. */
  emptied(): void
}

export function createHand({ settler, settingsOf, putBack, emptied }: HandParts): Hand {
  const held = new Set<Held>()
  const waiting: (() => void)[] = []

  const letGo = (one: Held): void => {
    held.delete(one)
    if (held.size > 0) return
    for (const tell of waiting.splice(0)) tell()
    emptied()
  }
  const write = (one: Held, settlement: Settlement, maxBatch: number): void => {
    // Nothing may be written for what somebody else has: it was reported when it was lost.
    if (one.isLost) settler.countLost()
    const written = one.isLost ? Promise.resolve() : settler.settle(settlement, maxBatch)
    void written.then(() => {
      if (settlement.write === 'reschedule') putBack(one.lease.queue, settlement.delayMs)
      letGo(one)
    })
  }
  return {
    held,
    hold(claimed) {
      for (const one of claimed) held.add(one)
    },
    finished(one, outcome) {
      const { flush, maxBatch } = settingsOf(one.lease.queue)
      write(one, settle(one.lease, outcome, Math.random()), flush === 'each' ? 1 : maxBatch)
    },
    // Together, whatever `flush` says: a stop may give back a thousand.
    unstarted: (one) =>
      write(one, { write: 'release', lease: one.lease }, settingsOf(one.lease.queue).maxBatch),
    untilEmpty: () =>
      new Promise((resolve) => {
        if (held.size === 0) resolve()
        else waiting.push(resolve)
      }),
  }
}
