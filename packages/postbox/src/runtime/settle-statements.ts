import type { Entry, SettlementBatch } from '../core/batching.ts'
import type { Settlement } from '../core/settlement.ts'
import type { StorageModes } from '../core/storage-modes.ts'
import { unreachable } from '../core/unreachable.ts'
import { type Burial, buryDead } from '../sql/bury-dead.ts'
import { deleteAcked } from '../sql/delete-acked.ts'
import { deleteWithFollowOns } from '../sql/delete-with-follow-ons.ts'
import { discardDead } from '../sql/discard-dead.ts'
import type { Fence } from '../sql/fence.ts'
import type { Names } from '../sql/names.ts'
import { isAnyNoted } from '../sql/note-death.ts'
import { parkDead, quarantineDead } from '../sql/quarantine-dead.ts'
import { type Release, releaseLeases } from '../sql/release-leases.ts'
import { rescheduleRetried } from '../sql/reschedule-retried.ts'
import { snoozeMessages } from '../sql/snooze-messages.ts'
import type { Statement } from '../sql/statement.ts'
import type { Wake } from '../sql/wake.ts'

export interface StatementRules extends StorageModes {
  readonly names: Names
  readonly wake: Wake
}

/** One statement for each kind of batch: fenced, and answered by the seqs that it wrote. */
export function statementOf(
  { kind, isNamed, isQuick, entries }: SettlementBatch,
  rules: StatementRules,
): Statement<{ readonly seq: string }> {
  const { names, wake, delivered } = rules
  switch (kind) {
    case 'delete':
      return deleteAcked(names, entries.map(fenceOf), { delivered, isQuick })
    case 'follow': {
      const settled = only(entries, 'delete').map((one) => ({ ...fence(one), followOns: one.followOns }))
      return deleteWithFollowOns(names, { settled, wake, delivered })
    }
    case 'release':
      return releaseLeases(names, only(entries, 'release').map(releaseOf), isNamed)
    case 'snooze': {
      const snoozed = only(entries, 'snooze').map((one) => ({ ...releaseOf(one), delayMs: one.delayMs }))
      return snoozeMessages(names, snoozed, isNamed)
    }
    case 'reschedule': {
      const retried = only(entries, 'reschedule')
      const rows = retried.map((one) => ({ ...fence(one), delayMs: one.delayMs, error: one.error }))
      return rescheduleRetried(names, rows, isNamed)
    }
    case 'bury':
      return burialOf(entries, rules)
    case 'park':
      return parkDead(names, burialsOf(entries))
    case 'quarantine':
      return quarantineDead(names, burialsOf(entries))
    default:
      return unreachable(kind)
  }
}

function burialOf(
  entries: readonly Entry[],
  { names, deadLetters }: StatementRules,
): Statement<{ readonly seq: string }> {
  const burials = burialsOf(entries)
  switch (deadLetters) {
    case 'table':
      return buryDead(names, burials)
    case 'in-place':
      return quarantineDead(names, burials)
    case 'discard':
      return isAnyNoted(burials) ? discardDead(names, burials) : deleteAcked(names, entries.map(fenceOf))
    default:
      return unreachable(deadLetters)
  }
}

function burialsOf(entries: readonly Entry[]): readonly Burial[] {
  return only(entries, 'bury').map((one) => ({
    ...fence(one),
    reason: one.reason,
    error: one.error,
    attempts: one.attempts,
    ...(one.lease.isOrdered ? { isNoted: true } : {}),
  }))
}

function fenceOf({ settlement }: Entry): Fence {
  return fence(settlement)
}

function fence({ lease }: Settlement): Fence {
  return { seq: lease.seq, token: lease.token }
}

function releaseOf({ lease }: Settlement): Release {
  return { seq: lease.seq, token: lease.token, deliveriesBefore: lease.deliveries - 1 }
}

function only<W extends Settlement['write']>(
  entries: readonly Entry[],
  write: W,
): readonly Extract<Settlement, { write: W }>[] {
  return entries
    .map(({ settlement }) => settlement)
    .filter((one): one is Extract<Settlement, { write: W }> => one.write === write)
}
