// Path 7/7 · flush: settlements → fenced writes; the seqs that come back decide what landed.
import { batchesOf } from '../core/batching.ts'
import type { Teller } from '../core/events.ts'
import type { Settlement } from '../core/settlement.ts'
import { createReports, type Reports, type Settled } from './settle-reports.ts'
import { createWriter, type WriterParts } from './settle-writer.ts'
import type { Pending, Settling } from './settling.ts'

export interface Settler {
  /**
   * Tells `done` when what became of a delivery is written, or has been given up. One flush at a time: what comes while one is
   * under way is written by the next, together. So at low load nothing waits, and under load batches form by themselves.
   */
  settle(settlement: Settlement, how: Settling, done: Pending['done']): void
  /** One whose lease was lost before it could be settled: nothing is written for it. */
  countLost(): void
  /** One that a transaction of its handler's has ended: it is only told of. */
  readonly transacted: Reports['transacted']
  /** How many wait to be written. */
  readonly waiting: number
  /** Writes fail, and are tried again: until one succeeds, nothing more should be claimed. */
  readonly isStuck: boolean
  /** What was written so far, by kind. */
  readonly settled: Settled
}

export interface SettlerParts extends WriterParts {
  readonly teller: Teller
  /** Something was written, or writing is stuck. */
  changed(): void
}

/** So many refused writes are nobody's bad luck: what is claimed on top of them would pile up in memory, leased and unwritten. */
const mostPostponed = 1_000

export function createSettler(parts: SettlerParts): Settler {
  const { teller } = parts
  const reports = createReports(teller, parts.deadLetters)
  let waiting: Pending[] = []
  let postponed = 0
  let isFlushing = false
  let isStuck = false
  let hasAnswered = false

  const stuck = (error: unknown): void => {
    if (!isStuck) teller.tell({ kind: 'breaker_opened', error })
    isStuck = true
    parts.changed()
  }
  const unstuck = (): void => {
    if (isStuck) teller.tell({ kind: 'breaker_closed' })
    isStuck = false
    parts.changed()
  }
  const enqueue = (entry: Pending): void => {
    waiting.push(entry)
    if (!isFlushing) void flushAll()
  }
  const answered = (): void => {
    hasAnswered = true
  }
  const write = createWriter(parts, {
    ...{ reports, stuck, answered },
    postponed(error) {
      if (++postponed >= mostPostponed) stuck(error)
    },
    again(entry) {
      postponed--
      enqueue(entry)
    },
  })
  const flushAll = async (): Promise<void> => {
    isFlushing = true
    // Those that ended in the same turn of the event loop go together.
    await Promise.resolve()
    while (waiting.length > 0) {
      const entries = waiting
      waiting = []
      hasAnswered = false
      for (const batch of batchesOf(entries, parts.deadLetters)) await write(batch)
      // Only now: what is still to be written may have outlived its lease, and a claim would take our own messages again.
      if (hasAnswered && postponed < mostPostponed) unstuck()
    }
    isFlushing = false
  }
  return {
    settle: (settlement, { maxBatch, durationMs, isLink = false }, done) =>
      enqueue({ settlement, maxBatch, durationMs, isLink, refusals: 0, done }),
    countLost: reports.countLost,
    transacted: reports.transacted,
    get waiting() {
      return waiting.length
    },
    get isStuck() {
      return isStuck
    },
    get settled() {
      return reports.settled
    },
  }
}
