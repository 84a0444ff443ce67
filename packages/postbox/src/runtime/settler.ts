// Path 7/7 · flush: settlements → fenced writes; the seqs that come back decide what landed.
import type { Executor } from '../adapters/executor.ts'
import type { Logger } from '../core/log.ts'
import type { Settlement } from '../core/settlement.ts'
import { deleteAcked, type Fence } from '../sql/delete-acked.ts'
import type { Names } from '../sql/names.ts'
import { rescheduleRetried } from '../sql/reschedule-retried.ts'

export interface Settler {
  /**
   * Resolves when what became of a delivery is written; rejects only when the database fails. One flush at a time: what comes while
   * one is under way is written by the next, together.
   */
  settle(settlement: Settlement): Promise<void>
}

type Reschedule = Extract<Settlement, { write: 'reschedule' }>

export function createSettler(executor: Executor, names: Names, log: Logger): Settler {
  let waiting: Settlement[] = []
  let underWay: Promise<unknown> = Promise.resolve()
  let next: Promise<void> | null = null
  const flush = (): Promise<void> => {
    const batch = waiting
    waiting = []
    next = null
    const written = write(batch, { executor, names, log })
    underWay = written.catch(() => {})
    return written
  }
  return {
    settle(settlement) {
      waiting.push(settlement)
      next ??= underWay.then(flush)
      return next
    },
  }
}

interface Parts {
  readonly executor: Executor
  readonly names: Names
  readonly log: Logger
}

/** One statement per kind of write. */
async function write(batch: readonly Settlement[], { executor, names, log }: Parts): Promise<void> {
  const acked = batch.filter((settlement) => settlement.write === 'delete')
  const failed = batch.filter((settlement) => settlement.write === 'reschedule')
  if (acked.length > 0) {
    const settled = await executor.run(deleteAcked(names, acked.map(fenceOf)))
    reportLost(acked, settled, log)
  }
  if (failed.length > 0) {
    const reschedules = failed.map((settlement) => ({ ...fenceOf(settlement), ...whenAndWhy(settlement) }))
    const settled = await executor.run(rescheduleRetried(names, reschedules))
    reportFailed(failed, settled, log)
    reportLost(failed, settled, log)
  }
}

function fenceOf({ lease }: Settlement): Fence {
  return { seq: lease.seq, token: lease.token }
}

function whenAndWhy({ delayMs, error }: Reschedule): { readonly delayMs: number; readonly error: string } {
  return { delayMs, error }
}

type Settled = readonly { readonly seq: string }[]

function reportFailed(failed: readonly Reschedule[], settled: Settled, log: Logger): void {
  const landed = new Set(settled.map((row) => row.seq))
  for (const { lease, delayMs, thrown } of failed.filter((settlement) => landed.has(settlement.lease.seq))) {
    const fields = {
      queue: lease.queue,
      id: lease.id,
      seq: lease.seq,
      attempt: lease.attempt,
      delayMs: Math.round(delayMs),
    }
    log({ level: 'warn', message: 'handler failed, message will be retried', fields, error: thrown })
  }
}

function reportLost(written: readonly Settlement[], settled: Settled, log: Logger): void {
  const landed = new Set(settled.map((row) => row.seq))
  for (const { lease, write } of written.filter((settlement) => !landed.has(settlement.lease.seq))) {
    const fields = { queue: lease.queue, id: lease.id, seq: lease.seq, deliveries: lease.deliveries, write }
    log({
      level: 'warn',
      message: 'lease lost: the handler outlived it and the message is somebody else’s now',
      fields,
    })
  }
}
