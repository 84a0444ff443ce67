import { halves, mostRefusals, type SettlementBatch } from '../core/batching.ts'
import { isDataError, isOutcomeUnknown, isRefused, isWholesale } from '../core/failed-statement.ts'
import { reconnectDelayMs } from '../core/pacing.ts'
import type { Names } from '../sql/names.ts'
import type { Wake } from '../sql/wake.ts'
import type { Clock } from './clock.ts'
import { type Failpoint, sent } from './failpoint.ts'
import type { Lane } from './lane.ts'
import type { Reports } from './settle-reports.ts'
import { statementOf } from './settle-statements.ts'
import type { Pending, Written } from './settling.ts'

export interface WriterParts {
  readonly lane: Pick<Lane, 'run'>
  readonly names: Names
  readonly clock: Clock
  readonly failpoint?: Failpoint | undefined
  /** How those who wait for follow-on messages are woken. */
  readonly wake: Wake
  readonly deadLetters: 'table' | 'discard'
  /** Aborted: what cannot be written now is given up. */
  readonly giveUp: AbortSignal
}

export interface WriterDesk {
  readonly reports: Reports
  /** Nothing can be written at the moment. */
  stuck(error: unknown): void
  /** It has to be written once more. */
  again(entry: Pending): void
}

type Batch = SettlementBatch<Pending>

const over: Written = { kind: 'over' }

/**
 * Writes a batch, whatever it takes. A row that is to blame must not hold the others: it is found by halves, and becomes something else.
 * Whatever else fails may pass: the whole is tried again, ever later, until it is written or given up.
 */
export function createWriter(parts: WriterParts, { reports, stuck, again }: WriterDesk) {
  const write = async (batch: Batch): Promise<void> => {
    let mayHaveLanded = false
    for (let failures = 1; ; failures++) {
      try {
        reports.written(batch, await send(parts, batch), mayHaveLanded)
        return tell(batch, over)
      } catch (error) {
        if (isRefused(error, refusableOf(batch, parts.deadLetters))) return await writeRefused(batch, error)
        mayHaveLanded ||= isOutcomeUnknown(error)
        stuck(error)
        if (parts.giveUp.aborted) return giveUp(batch, error)
        const delayMs = Math.round(reconnectDelayMs(failures, Math.random()))
        reports.failing(batch, error, delayMs)
        await parts.clock.sleep(delayMs, parts.giveUp)
      }
    }
  }
  const writeRefused = async (batch: Batch, error: unknown): Promise<void> => {
    if (batch.entries.length > 1 && !isWholesale(error)) {
      for (const half of halves(batch)) await write(half)
    } else if (batch.isNamed) await write({ ...batch, isNamed: false })
    else if (batch.kind === 'follow') followLater(batch, error)
    else if (batch.kind === 'bury') writeLater(batch, error)
    else giveUp(batch, error)
  }
  /** Somebody is about to take the name of a timer that it arms: that is over soon, as a rule. Whatever else is wrong stays wrong. */
  const followLater = (batch: Batch, error: unknown): void => {
    const isLast = batch.entries.every(({ refusals }) => refusals + 1 >= mostRefusals)
    if (isDataError(error) || isLast) tell(batch, { kind: 'refused', error })
    else writeLater(batch, error)
  }
  /** The others go on meanwhile; its lease is kept, so that its handler is not run again. A burial that is refused too often becomes a quarantine. */
  const writeLater = ({ kind, entries }: Batch, error: unknown): void => {
    for (const entry of entries) {
      entry.refusals++
      const delayMs = entry.refusals < mostRefusals ? 1_000 * 2 ** (entry.refusals - 1) : 0
      reports.postponed(kind, entry, { error, delayMs })
      void parts.clock.sleep(delayMs, parts.giveUp).then(() => again(entry))
    }
  }
  const giveUp = (batch: Batch, error: unknown): void => {
    reports.unwritable(batch, error)
    tell(batch, over)
  }
  return write
}

async function send(parts: WriterParts, batch: Batch): Promise<readonly { readonly seq: string }[]> {
  if (parts.failpoint) await parts.failpoint.reach('before_flush')
  const rows = await sent(parts.lane.run(statementOf(batch, parts)), parts.failpoint, 'flush_sent')
  if (parts.failpoint) await parts.failpoint.reach('after_flush')
  return rows
}

/** As soon as its own statement is through, or a row that is gone would be renewed. */
function tell({ entries }: Batch, written: Written): void {
  for (const entry of entries) entry.done(written)
}

function refusableOf(
  { kind, isNamed }: Batch,
  deadLetters: 'table' | 'discard',
): 'rows' | 'burials' | 'names' {
  if (isNamed || kind === 'follow') return 'names'
  return kind === 'bury' && deadLetters === 'table' ? 'burials' : 'rows'
}
