import type { Outcome } from '../core/outcome.ts'
import type { Desk } from './hand.ts'
import { atOver, type Fate, type Held, untilOver } from './held.ts'
import type { Units } from './units.ts'

/** The ends of messages, and what they mean for others of their key. */
export interface Succession {
  readonly finished: Desk['finished']
  /** It cannot be started any more. */
  readonly left: Desk['unstarted']
}

export interface SuccessionParts {
  readonly units: Units
  readonly desk: Desk
  /** The last message of a key that was held here is gone. */
  keySettled(queue: string, key: string, seq: string): void
  /** The next of a key may start, or those that stood behind have gone. */
  changed(): void
}

interface Ended {
  readonly held: Held
  readonly fate: Fate
}

/**
 * In an ordered queue the next of a key starts when it is **written** that the one before is gone, and not when its handler has ended: that one could come back, and be
 * handled after it. Where it is not gone, those that stand behind it are given back.
 * What one flush has written goes on together, in the turn after: a flush ends hundreds, and whoever hears of a change looks at everything.
 */
export function createSuccession({ units, desk, keySettled, changed }: SuccessionParts): Succession {
  const ended: Ended[] = []
  const tellOver = ({ held, fate }: Ended, isOver: boolean): void => {
    const { queue, key, seq } = held.lease
    if (key !== null && (isOver || fate === 'skipped')) keySettled(queue, key, seq)
    // From the message itself on: if it is still there it is the first, and whoever has it keeps it.
    if (key !== null && fate === 'lost') keySettled(queue, key, String(BigInt(seq) - 1n))
  }
  /** False: it does so later. */
  const goOn = (one: Ended): boolean => {
    const { rest, isOver } = units.ended(one.held, one.fate === 'gone')
    const released = rest.map((left) => fateOf(left, () => desk.unstarted(left)))
    // Whoever claims the next one finds it noted there. With none to wait for, not a turn later: a stop asks right now whom to tell.
    if (released.length > 0 && (one.fate === 'skipped' || one.fate === 'lost')) {
      void Promise.all(released).then(() => {
        tellOver(one, isOver)
        changed()
      })
      return false
    }
    tellOver(one, isOver)
    return true
  }
  const goOnAll = (): void => {
    const gone = ended.splice(0).filter(goOn)
    if (gone.length > 0) changed()
  }
  const whenOver = (held: Held, end: () => void): void => {
    atOver(held, (fate) => {
      if (ended.push({ held, fate }) === 1) queueMicrotask(goOnAll)
    })
    end()
  }
  return {
    finished(held, outcome: Outcome, durationMs) {
      if (!held.lease.isOrdered) return desk.finished(held, outcome, durationMs)
      held.isLink = units.hasNext(held)
      whenOver(held, () => desk.finished(held, outcome, durationMs))
    },
    left(held) {
      if (!held.lease.isOrdered) return desk.unstarted(held)
      whenOver(held, () => desk.unstarted(held))
    },
  }
}

/** Ends it, and waits for what becomes of it. */
function fateOf(held: Held, end: () => void): Promise<Fate> {
  const fate = untilOver(held)
  end()
  return fate
}
