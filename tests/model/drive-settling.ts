import { sqlState, sqlStateOf } from '../../packages/postbox/src/core/sql-state.ts'
import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { extendLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { type Driven, draftFor, wakeOf } from './driven.ts'
import { uuidOf } from './stored.ts'
import type { Settled, Step } from './terms.ts'

type Settle = Step & { readonly kind: 'settle' }

/** Returns the seqs that were written. */
export async function settle(driven: Driven, step: Settle): Promise<readonly string[]> {
  try {
    const rows = await driven.store.database.run(statementOf(driven, step))
    return rows.map(({ seq }) => seq)
  } catch (error) {
    // Two of them want the same name back: the runtime finds them by halves, and so each is written alone in the end.
    if (sqlStateOf(error) !== sqlState.uniqueViolation || step.settled.length < 2) throw error
    const written: string[] = []
    for (const one of step.settled) written.push(...(await settle(driven, { ...step, settled: [one] })))
    return written
  }
}

function statementOf(driven: Driven, { settled, write }: Settle): Statement<{ readonly seq: string }> {
  const { names } = driven.store
  const fences = settled.map(({ place, claim }) => ({
    seq: driven.places.seqOf(place),
    token: uuidOf(claim),
  }))
  switch (write.kind) {
    case 'ack':
      return settled.some(({ followOns }) => followOns.length > 0)
        ? following(driven, settled)
        : deleteAcked(names, fences, driven.delivered)
    case 'retry': {
      const { delayMs, error, takesNames } = write
      return rescheduleRetried(
        names,
        fences.map((fence) => ({ ...fence, delayMs, error })),
        takesNames,
      )
    }
    case 'snooze': {
      const { delayMs, takesNames } = write
      return snoozeMessages(
        names,
        fences.map((fence) => ({ ...fence, delayMs })),
        takesNames,
      )
    }
    case 'release':
      return releaseLeases(names, fences, write.takesNames)
    case 'bury':
    case 'quarantine': {
      const { reason, error, hasRun } = write
      const burials = settled.map((one, nth) => {
        const attempts = (driven.attempts.get(`${one.place} ${one.claim}`) ?? 0) + (hasRun ? 1 : 0)
        return { ...fences[nth]!, reason, error, attempts }
      })
      return (write.kind === 'bury' ? buryDead : quarantineDead)(names, burials)
    }
    case 'extend':
      return extendLeases(
        names,
        fences.map((fence) => ({ ...fence, leaseMs: write.leaseMs })),
      )
    default:
      return unreachable(write)
  }
}

function following(driven: Driven, settled: readonly Settled[]): Statement<{ readonly seq: string }> {
  const { store, places } = driven
  const acked = settled.map(({ place, claim, followOns }) => ({
    seq: places.seqOf(place),
    token: uuidOf(claim),
    followOns: followOns.map((draft) => draftFor(driven, draft)),
  }))
  const { delivered } = driven
  return deleteWithFollowOns(store.names, { settled: acked, wake: wakeOf(store), delivered })
}
