import { sqlState, sqlStateOf } from '../../packages/postbox/src/core/sql-state.ts'
import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { countDelivery } from '../../packages/postbox/src/sql/count-delivery.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { extendLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { parkDead, quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { type Release, releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { type Driven, draftFor, wakeOf } from './driven.ts'
import { uuidOf } from './stored.ts'
import { type Fence, orderedQueue, type Settled, type Step } from './terms.ts'

type Settle = Step & { readonly kind: 'settle' }

/** Returns the seqs that were written. */
export async function settle(driven: Driven, step: Settle): Promise<readonly string[]> {
  if (step.write.kind === 'count') return count(driven, step.settled)
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

/** One by one, as they are run. */
async function count({ store, ...driven }: Driven, settled: readonly Settled[]): Promise<readonly string[]> {
  const written: string[] = []
  for (const one of settled) {
    const { seq, token, deliveriesBefore } = leaseOf(driven, one)
    const counted = { seq, token, deliveries: deliveriesBefore + 1 }
    written.push(...(await store.database.run(countDelivery(store.names, counted))).map((row) => row.seq))
  }
  return written
}

function leaseOf({ places, told }: Pick<Driven, 'places' | 'told'>, { place, claim }: Fence): Release {
  const { deliveries = 1, isSuspect = false } = told.get(`${place} ${claim}`) ?? {}
  const deliveriesBefore = isSuspect ? deliveries : deliveries - 1
  return { seq: places.seqOf(place), token: uuidOf(claim), deliveriesBefore }
}

function statementOf(driven: Driven, { settled, write }: Settle): Statement<{ readonly seq: string }> {
  const { names } = driven.store
  const fences = settled.map((one) => leaseOf(driven, one))
  switch (write.kind) {
    case 'ack':
      return settled.some(({ followOns }) => followOns.length > 0)
        ? following(driven, settled)
        : deleteAcked(names, fences, { delivered: driven.delivered })
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
    case 'quarantine':
    case 'park': {
      const { reason, error, hasRun } = write
      const burials = settled.map((one, nth) => {
        const told = driven.told.get(`${one.place} ${one.claim}`)
        const attempts = (told?.attempts ?? 0) + (hasRun ? 1 : 0)
        const isNoted = told?.queue === orderedQueue && told.key !== null
        return { ...fences[nth]!, reason, error, attempts, ...(isNoted ? { isNoted } : {}) }
      })
      return burying[write.kind](names, burials)
    }
    case 'extend':
      return extendLeases(
        names,
        fences.map((fence) => ({ ...fence, leaseMs: write.leaseMs })),
      )
    case 'count':
      throw new Error('counted one by one')
    default:
      return unreachable(write)
  }
}

const burying = { bury: buryDead, quarantine: quarantineDead, park: parkDead }

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
