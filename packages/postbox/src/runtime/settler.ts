// Path 7/7 · flush: settlements → fenced writes; the seqs that come back decide what landed.
import type { Executor } from '../adapters/executor.ts'
import type { Logger } from '../core/log.ts'
import type { Settlement } from '../core/settlement.ts'
import { deleteAcked, type Fence } from '../sql/delete-acked.ts'
import type { Names } from '../sql/names.ts'
import { rescheduleRetried } from '../sql/reschedule-retried.ts'

export interface Settler {
  /** Writes what became of a claim: one statement per kind of write. Throws only when the database does. */
  flush(settlements: readonly Settlement[]): Promise<void>
}

type Reschedule = Extract<Settlement, { write: 'reschedule' }>

export function createSettler(executor: Executor, names: Names, log: Logger): Settler {
  return {
    async flush(settlements) {
      const acked = settlements.filter((settlement) => settlement.write === 'delete')
      const failed = settlements.filter((settlement) => settlement.write === 'reschedule')
      if (acked.length > 0) {
        const settled = await executor.run(deleteAcked(names, acked.map(fenceOf)))
        reportLost(acked, settled, log)
      }
      if (failed.length > 0) {
        const batch = failed.map((settlement) => ({ ...fenceOf(settlement), ...whenAndWhy(settlement) }))
        const settled = await executor.run(rescheduleRetried(names, batch))
        reportFailed(failed, settled, log)
        reportLost(failed, settled, log)
      }
    },
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
  for (const { lease, delayMs, error } of failed.filter((settlement) => landed.has(settlement.lease.seq))) {
    const fields = {
      queue: lease.queue,
      id: lease.id,
      seq: lease.seq,
      attempt: lease.attempt,
      delayMs: Math.round(delayMs),
      error,
    }
    log({ level: 'warn', message: 'handler failed, message will be retried', fields })
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
