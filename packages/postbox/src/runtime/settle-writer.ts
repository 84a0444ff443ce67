import { halves, mostRefusals, refusedDelayMs, type SettlementBatch } from '../core/batching.ts'
import {
  isLockTimeout,
  isOutcomeUnknown,
  isRefused,
  isWholesale,
  type Writing,
} from '../core/failed-statement.ts'
import { reconnectDelayMs } from '../core/pacing.ts'
import type { StorageModes } from '../core/storage-modes.ts'
import { findBuried } from '../sql/find-buried.ts'
import type { Names } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import type { Wake } from '../sql/wake.ts'
import type { Clock } from './clock.ts'
import { type Failpoint, sent } from './failpoint.ts'
import type { Lane } from './lane.ts'
import type { Reports } from './settle-reports.ts'
import { statementOf } from './settle-statements.ts'
import type { Pending, Written } from './settling.ts'
import { createSignals } from './signals.ts'

export interface WriterParts extends StorageModes {
  readonly lane: Pick<Lane, 'run'>
  readonly names: Names
  readonly clock: Clock
  readonly failpoint?: Failpoint | undefined
  /** How those who wait for follow-on messages are woken. */
  readonly wake: Wake
  /** Aborted: what cannot be written now is given up. */
  readonly giveUp: AbortSignal
}

export interface WriterDesk {
  readonly reports: Reports
  /** Nothing can be written at the moment. */
  stuck(error: unknown): void
  /** The database has taken it, or said that it never will. */
  answered(): void
  /** It was refused, and waits for another try. */
  postponed(error: unknown): void
  /** It has to be written once more. */
  again(entry: Pending): void
}

type Batch = SettlementBatch<Pending>

const over: Written = { kind: 'over', landed: true }
const lost: Written = { kind: 'over', landed: false }

/**
 * Writes a batch, whatever it takes. A row that is to blame must not hold the others: it is found by halves, and becomes something else.
 * Whatever else fails may pass: the whole is tried again, ever later, until it is written or given up.
 */
export function createWriter(parts: WriterParts, desk: WriterDesk) {
  const { reports, stuck, answered } = desk
  const pauses = createSignals(parts.giveUp)
  const write = async (batch: Batch): Promise<void> => {
    const statement = attempt(() => statementOf(batch, parts))
    // Too large a text, say: no use in sending it again.
    if ('error' in statement) return writeRefused(batch, statement.error)
    let mayHaveLanded = false
    for (let failures = 1; ; failures++) {
      let seqs: ReadonlySet<string>
      try {
        const rows = await send(parts, statement.value)
        seqs = seqsOf(mayHaveLanded ? [...rows, ...(await landed(parts, batch))] : rows)
      } catch (error) {
        if (isRefused(error, writingOf(batch, parts))) return await writeRefused(batch, error)
        mayHaveLanded ||= isOutcomeUnknown(error)
        stuck(error)
        if (parts.giveUp.aborted) return giveUp(batch, error)
        const delayMs = Math.round(reconnectDelayMs(failures, Math.random()))
        reports.failing(batch, error, delayMs)
        await parts.clock.sleep(delayMs, parts.giveUp)
        continue
      }
      reports.written(batch, seqs, mayHaveLanded)
      answered()
      return tellWritten(batch, seqs)
    }
  }
  const writeRefused = async (batch: Batch, error: unknown): Promise<void> => {
    answered()
    // Not by halves: everybody would wait a little for each of them.
    if (batch.isNamed && isLockTimeout(error)) return withoutNames(batch, error)
    if (batch.entries.length > 1 && !isWholesale(error)) {
      for (const half of halves(batch)) await write(half)
    } else if (batch.kind === 'follow') tell(batch, { kind: 'refused', error })
    else if (batch.isNamed) await write({ ...batch, isNamed: false })
    else if (mustLand(batch, parts) ? !parts.giveUp.aborted : batch.kind === 'bury') writeLater(batch, error)
    else giveUp(batch, error)
  }
  /** Somebody is about to take a timer's name, and that may take him long. What goes back can do without; what arms one is tried again. */
  const withoutNames = async (batch: Batch, error: unknown): Promise<void> => {
    if (batch.kind !== 'follow') return write({ ...batch, isNamed: false })
    const isLast = ({ refusals }: Pending): boolean => refusals + 1 >= mostRefusals
    const others = batch.entries.filter((entry) => !isLast(entry))
    tell({ ...batch, entries: batch.entries.filter(isLast) }, { kind: 'refused', error })
    // In smaller batches, so that those who have nothing to do with it get through.
    for (const entry of others) entry.maxBatch = Math.ceil(batch.entries.length / 4)
    writeLater({ ...batch, entries: others }, error)
  }
  /** The others go on meanwhile; its lease is kept, so that its handler is not run again. A burial that is refused too often becomes a quarantine. */
  const writeLater = (batch: Batch, error: unknown): void => {
    for (const entry of batch.entries) {
      entry.refusals++
      const delayMs = refusedDelayMs(entry.refusals, !mustLand(batch, parts))
      reports.postponed(batch.kind, entry, { error, delayMs })
      desk.postponed(error)
      void pauses.during(({ signal }) => parts.clock.sleep(delayMs, signal)).then(() => desk.again(entry))
    }
  }
  const giveUp = (batch: Batch, error: unknown): void => {
    reports.unwritable(batch, error)
    tell(batch, lost)
  }
  return write
}

type Rows = readonly { readonly seq: string }[]

async function send({ lane, failpoint }: WriterParts, statement: Statement<Rows[number]>): Promise<Rows> {
  if (failpoint) await failpoint.reach('before_flush')
  const rows = await sent(lane.run(statement), failpoint, 'flush_sent')
  if (failpoint) await failpoint.reach('after_flush')
  return rows
}

/** What an earlier try has buried, though its answer was lost: an alert depends on it. Where we cannot see it, it may have landed. */
async function landed({ lane, names, deadLetters }: WriterParts, { kind, entries }: Batch): Promise<Rows> {
  const isKept = kind === 'quarantine' || kind === 'park' || (kind === 'bury' && deadLetters !== 'discard')
  if (!isKept) return []
  const place = kind === 'bury' && deadLetters === 'table' ? 'moved' : 'quarantined'
  const leases = entries.map(({ settlement: { lease } }) => lease)
  return lane.run(findBuried(names, leases, place)).catch(() => [])
}

/** Whether nothing else may become of it: there is no other place for it, and its handler must not be run again. */
function mustLand({ kind }: Batch, { deadLetters, delivered }: StorageModes): boolean {
  return (
    kind === 'park' ||
    (kind === 'bury' && deadLetters === 'in-place') ||
    (kind === 'delete' && delivered === 'table')
  )
}

function attempt<T>(work: () => T): { readonly value: T } | { readonly error: unknown } {
  try {
    return { value: work() }
  } catch (error) {
    return { error }
  }
}

/** As soon as its own statement is through, or a row that is gone would be renewed. */
function tell({ entries }: Batch, written: Written): void {
  for (const entry of entries) entry.done(written)
}

function seqsOf(rows: Rows): ReadonlySet<string> {
  const seqs = new Set<string>()
  for (const { seq } of rows) seqs.add(seq)
  return seqs
}

function tellWritten({ entries }: Batch, seqs: ReadonlySet<string>): void {
  for (const entry of entries) entry.done(seqs.has(entry.settlement.lease.seq) ? over : lost)
}

function writingOf({ kind, isNamed }: Batch, { deadLetters, delivered }: StorageModes): Writing {
  // Where delivered messages are kept, a right that is missing may be that on their table: no reason to run handlers again.
  if (kind === 'follow' && delivered === 'delete') return isNamed ? 'arming' : 'follow-ons'
  if (isNamed) return 'named'
  return kind === 'bury' && deadLetters === 'table' ? 'burials' : 'rows'
}
