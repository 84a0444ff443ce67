import type { SettlementBatch } from '../core/batching.ts'
import type { Lease } from '../core/lease.ts'
import type { Logger } from '../core/log.ts'
import type { Settlement } from '../core/settlement.ts'

/** How many deliveries ended how. */
export interface Settled {
  readonly acked: number
  readonly retried: number
  readonly buried: number
  readonly released: number
  /** The lease was lost before what became of the delivery could be written. */
  readonly lost: number
}

/** Says what became of settlements: in the log, and as counts. */
export interface Reports {
  readonly settled: Settled
  /** `rows` were written. Those that are missing had lost their lease, unless an earlier try landed and only its answer was lost. */
  written(batch: SettlementBatch, rows: readonly { readonly seq: string }[], mayHaveLanded: boolean): void
  countLost(): void
  failing(batch: SettlementBatch, error: unknown, delayMs: number): void
  unwritable(batch: SettlementBatch, error: unknown): void
  givenUp(batch: SettlementBatch, error: unknown): void
}

const countedAs = { delete: 'acked', reschedule: 'retried', bury: 'buried', release: 'released' } as const

export function createReports(log: Logger): Reports {
  const settled = { acked: 0, retried: 0, buried: 0, released: 0, lost: 0 }
  return {
    settled,
    written({ write, settlements }, rows, mayHaveLanded) {
      const landed = new Set(rows.map((row) => row.seq))
      for (const settlement of settlements) {
        if (landed.has(settlement.lease.seq)) {
          settled[countedAs[write]]++
          reportWritten(settlement, log)
        } else {
          settled.lost++
          reportLost(settlement, mayHaveLanded, log)
        }
      }
    },
    countLost() {
      settled.lost++
    },
    failing({ write, settlements }, error, delayMs) {
      const fields = { write, messages: settlements.length, delayMs }
      log({
        level: 'error',
        message: 'settling failed, trying again; nothing is claimed until it works',
        fields,
        error,
      })
    },
    unwritable(batch, error) {
      each(batch, log, {
        level: 'error',
        message: 'a settlement cannot be written: the message will be delivered again when its lease ends',
        error,
      })
    },
    givenUp(batch, error) {
      each(batch, log, {
        level: 'error',
        message:
          'stopped before it could be settled: the message will be delivered again when its lease ends',
        error,
      })
    },
  }
}

function reportWritten(settlement: Settlement, log: Logger): void {
  if (settlement.write !== 'reschedule' && settlement.write !== 'bury') return
  const { lease, thrown } = settlement
  const fields = { ...fieldsOf(lease), attempt: lease.attempt }
  if (settlement.write === 'bury') {
    const message = 'message is dead: it was moved to the dead letters'
    log({ level: 'error', message, fields: { ...fields, reason: settlement.reason }, error: thrown })
  } else {
    const delayMs = Math.round(settlement.delayMs)
    const message = 'handler failed, message will be retried'
    log({ level: 'warn', message, fields: { ...fields, delayMs }, error: thrown })
  }
}

function reportLost({ lease, write }: Settlement, mayHaveLanded: boolean, log: Logger): void {
  const fields = { ...fieldsOf(lease), deliveries: lease.deliveries, write }
  const message = mayHaveLanded
    ? 'settled before the connection broke, or lease lost: the message is no longer ours'
    : 'lease lost: the handler outlived it and the message is somebody else’s now'
  log({ level: 'warn', message, fields })
}

function each(
  { write, settlements }: SettlementBatch,
  log: Logger,
  entry: { readonly level: 'error'; readonly message: string; readonly error: unknown },
): void {
  for (const { lease } of settlements) log({ ...entry, fields: { ...fieldsOf(lease), write } })
}

function fieldsOf({ queue, id, seq }: Lease): Readonly<Record<string, unknown>> {
  return { queue, id, seq }
}
