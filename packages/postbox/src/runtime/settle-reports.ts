import type { BatchKind, SettlementBatch } from '../core/batching.ts'
import type { LeaseLostEvent, OfMessage, Teller, Told } from '../core/events.ts'
import type { Lease } from '../core/lease.ts'
import { ofMessage } from '../core/of-message.ts'
import type { EndedOutcome } from '../core/outcome.ts'
import type { Settlement } from '../core/settlement.ts'
import type { DeadLetterStorage } from '../core/storage-modes.ts'
import { unreachable } from '../core/unreachable.ts'
import type { Pending } from './settling.ts'

/** How many deliveries ended how. */
export interface Settled {
  readonly acked: number
  readonly retried: number
  readonly snoozed: number
  readonly dead: number
  readonly released: number
  /** The lease was lost before what became of the delivery could be written. */
  readonly lost: number
}

/** Says what became of settlements: as events, and as counts. */
export interface Reports {
  readonly settled: Settled
  /** Those of the seqs `landed` were written. The others had lost their lease, unless an earlier try landed and only its answer was lost. */
  written(batch: SettlementBatch<Pending>, landed: ReadonlySet<string>, mayHaveLanded: boolean): void
  countLost(): void
  /** A transaction of its handler's has ended it. */
  transacted(lease: Lease, outcome: EndedOutcome, durationMs: number | null): void
  /** A write failed that is tried again. */
  failing(batch: SettlementBatch<Pending>, error: unknown, delayMs: number): void
  /** It was refused, and is tried again by itself. */
  postponed(kind: BatchKind, entry: Pending, why: { readonly error: unknown; readonly delayMs: number }): void
  /** It is not tried again. */
  unwritable(batch: SettlementBatch<Pending>, error: unknown): void
}

const countedAs = {
  delete: 'acked',
  reschedule: 'retried',
  snooze: 'snoozed',
  bury: 'dead',
  release: 'released',
} as const

export function createReports(teller: Teller, deadLetters: DeadLetterStorage): Reports {
  const settled = { acked: 0, retried: 0, snoozed: 0, dead: 0, released: 0, lost: 0 }
  return {
    settled,
    written({ kind, entries }, landed, mayHaveLanded) {
      for (const entry of entries) {
        const { settlement } = entry
        if (landed.has(settlement.lease.seq)) {
          settled[countedAs[settlement.write]]++
          // One for each message: not made when nobody hears it.
          if (teller.isHeard || isLogged(settlement)) teller.tell(writtenEvent(entry))
          if (
            settlement.write === 'bury' &&
            (deadLetters !== 'discard' || kind === 'quarantine' || kind === 'park')
          )
            teller.tell({
              kind: 'dlq_written',
              ...ofMessage(settlement.lease),
              reason: settlement.reason,
              isQuarantined: kind === 'quarantine',
            })
        } else {
          settled.lost++
          teller.tell(lostEvent(entry, mayHaveLanded))
        }
      }
    },
    countLost() {
      settled.lost++
    },
    transacted(lease, outcome, durationMs) {
      const about = { ...ofMessage(lease), durationMs }
      if (outcome.kind === 'committed') {
        settled.acked++
        if (teller.isHeard) teller.tell({ kind: 'acked', ...about, followOns: outcome.followOns })
      } else {
        settled.lost++
        const { mayHaveLanded } = outcome
        teller.tell({ kind: 'lease_lost', ...about, phase: 'terminal', mayHaveLanded })
      }
    },
    failing({ kind, entries }, error, delayMs) {
      teller.tell({ kind: 'settle_failed', write: kind, messages: entries.length, error, delayMs })
    },
    postponed(write, { settlement: { lease } }, { error, delayMs }) {
      teller.tell({ kind: 'settle_failed', write, messages: 1, error, delayMs, ...placeOf(lease) })
    },
    unwritable({ kind: write, entries }, error) {
      for (const { settlement } of entries) {
        const place = placeOf(settlement.lease)
        teller.tell({ kind: 'settle_failed', write, messages: 1, error, delayMs: null, ...place })
      }
    },
  }
}

/** What is told of a write that landed, and only then. */
function writtenEvent({ settlement, durationMs }: Pending): Told {
  const about = { ...ofMessage(settlement.lease), durationMs }
  switch (settlement.write) {
    case 'delete':
      return { kind: 'acked', ...about, followOns: settlement.followOns.length }
    case 'release':
      return { kind: 'released', ...about }
    case 'snooze':
      return { kind: 'snoozed', ...about, delayMs: settlement.delayMs }
    case 'reschedule':
      return { kind: 'retried', ...about, delayMs: settlement.delayMs, error: settlement.thrown }
    case 'bury': {
      const { key, headers, queue } = settlement.lease
      const { reason, attempts, thrown: error, parks: isParked = false } = settlement
      const { type = null, source = null, target = queue } = headers
      return { kind: 'dead', ...about, key, isParked, headers, type, source, target, reason, attempts, error }
    }
    default:
      return unreachable(settlement)
  }
}

function lostEvent(
  { settlement: { write, lease }, durationMs }: Pending,
  mayHaveLanded: boolean,
): Omit<LeaseLostEvent, 'handler'> {
  const phase = write === 'delete' || write === 'bury' ? 'terminal' : 'retry'
  return { kind: 'lease_lost', ...ofMessage(lease), durationMs, phase, mayHaveLanded }
}

function isLogged({ write }: Settlement): boolean {
  return write === 'reschedule' || write === 'bury'
}

function placeOf({ queue, id, seq }: Lease): Pick<OfMessage, 'queue' | 'id' | 'seq'> {
  return { queue, id, seq }
}
