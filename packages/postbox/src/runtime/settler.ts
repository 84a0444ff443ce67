// Path 7/7 · flush: settlements → fenced writes; the seqs that come back decide what landed.
import { batchesOf, halves, type SettlementBatch, type Waiting } from '../core/batching.ts'
import { isDataError, isOutcomeUnknown } from '../core/failed-statement.ts'
import type { Logger } from '../core/log.ts'
import { reconnectDelayMs } from '../core/pacing.ts'
import type { Settlement } from '../core/settlement.ts'
import { unreachable } from '../core/unreachable.ts'
import { buryDead } from '../sql/bury-dead.ts'
import { deleteAcked } from '../sql/delete-acked.ts'
import type { Fence } from '../sql/fence.ts'
import type { Names } from '../sql/names.ts'
import { releaseLeases } from '../sql/release-leases.ts'
import { rescheduleRetried } from '../sql/reschedule-retried.ts'
import type { Statement } from '../sql/statement.ts'
import type { Clock } from './clock.ts'
import { type Failpoint, sent } from './failpoint.ts'
import type { Lane } from './lane.ts'
import { createReports, type Settled } from './settle-reports.ts'

export interface Settler {
  /**
   * Resolves when what became of a delivery is written, or has been given up; never rejects. One flush at a time: what comes while one is
   * under way is written by the next, together. So at low load nothing waits, and under load batches form by themselves.
   */
  settle(settlement: Settlement, maxBatch: number): Promise<void>
  /** One whose lease was lost before it could be settled: nothing is written for it. */
  countLost(): void
  /** How many wait to be written. */
  readonly waiting: number
  /** Writes fail, and are tried again: until one succeeds, nothing more should be claimed. */
  readonly isStuck: boolean
  /** What was written so far, by kind. */
  readonly settled: Settled
}

export interface SettlerParts {
  readonly lane: Pick<Lane, 'run'>
  readonly names: Names
  readonly clock: Clock
  readonly log: Logger
  readonly failpoint?: Failpoint | undefined
  /** Aborted: what cannot be written now is given up. */
  readonly giveUp: AbortSignal
  /** Something was written, or writing is stuck. */
  changed(): void
}

export function createSettler(parts: SettlerParts): Settler {
  const reports = createReports(parts.log)
  let waiting: Waiting[] = []
  // Who waits for which settlement: told as soon as its own statement is through, or a row that is gone would be renewed.
  const waiters = new Map<Settlement, () => void>()
  let isFlushing = false
  let isStuck = false

  const become = (stuck: boolean): void => {
    isStuck = stuck
    parts.changed()
  }
  const flushAll = async (): Promise<void> => {
    isFlushing = true
    // Those that ended in the same turn of the event loop go together.
    await Promise.resolve()
    while (waiting.length > 0) {
      const entries = waiting
      waiting = []
      for (const batch of batchesOf(entries)) await write(batch)
      // Only now: what is still to be written may have outlived its lease, and a claim would take our own messages again.
      become(false)
    }
    isFlushing = false
  }
  /** Until it is written. One bad row must not hold the others: it is found by halves. Whatever else fails may pass: the whole is tried again. */
  const write = async (batch: SettlementBatch): Promise<void> => {
    let mayHaveLanded = false
    for (let failures = 1; ; failures++) {
      try {
        if (parts.failpoint) await parts.failpoint.reach('before_flush')
        const rows = await sent(
          parts.lane.run(statementOf(parts.names, batch)),
          parts.failpoint,
          'flush_sent',
        )
        if (parts.failpoint) await parts.failpoint.reach('after_flush')
        reports.written(batch, rows, mayHaveLanded)
        return tell(batch)
      } catch (error) {
        if (isDataError(error)) return await writeHalves(batch, error)
        mayHaveLanded ||= isOutcomeUnknown(error)
        become(true)
        const delayMs = Math.round(reconnectDelayMs(failures, Math.random()))
        if (parts.giveUp.aborted) {
          reports.givenUp(batch, error)
          return tell(batch)
        }
        reports.failing(batch, error, delayMs)
        await parts.clock.sleep(delayMs, parts.giveUp)
      }
    }
  }
  const writeHalves = async (batch: SettlementBatch, error: unknown): Promise<void> => {
    if (batch.settlements.length === 1) {
      reports.unwritable(batch, error)
      return tell(batch)
    }
    for (const half of halves(batch)) await write(half)
  }
  const tell = ({ settlements }: SettlementBatch): void => {
    for (const settlement of settlements) waiters.get(settlement)?.()
    for (const settlement of settlements) waiters.delete(settlement)
  }
  return {
    settle: (settlement, maxBatch) =>
      new Promise((done) => {
        waiting.push({ settlement, maxBatch })
        waiters.set(settlement, done)
        if (!isFlushing) void flushAll()
      }),
    countLost: reports.countLost,
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

/** One statement for each kind of write. */
function statementOf(
  names: Names,
  { write, settlements }: SettlementBatch,
): Statement<{ readonly seq: string }> {
  switch (write) {
    case 'delete':
      return deleteAcked(names, settlements.map(fenceOf))
    case 'release':
      return releaseLeases(names, settlements.map(fenceOf))
    case 'reschedule':
      return rescheduleRetried(
        names,
        only(settlements, 'reschedule').map((one) => ({
          ...fenceOf(one),
          delayMs: one.delayMs,
          error: one.error,
        })),
      )
    case 'bury':
      return buryDead(
        names,
        only(settlements, 'bury').map((one) => ({ ...fenceOf(one), reason: one.reason, error: one.error })),
      )
    default:
      return unreachable(write)
  }
}

function fenceOf({ lease }: Settlement): Fence {
  return { seq: lease.seq, token: lease.token }
}

function only<W extends Settlement['write']>(
  settlements: readonly Settlement[],
  write: W,
): readonly Extract<Settlement, { write: W }>[] {
  return settlements.filter((one): one is Extract<Settlement, { write: W }> => one.write === write)
}
