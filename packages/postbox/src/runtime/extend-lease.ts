import { LeaseLostError } from '../core/errors.ts'
import { extendLeases, holdsLeases } from '../sql/extend-leases.ts'
import type { Names } from '../sql/names.ts'
import type { Clock } from './clock.ts'
import type { Held } from './held.ts'
import type { Lane } from './lane.ts'

export interface ExtendParts {
  readonly lane: Pick<Lane, 'run'>
  readonly names: Names
  readonly clock: Pick<Clock, 'now'>
}

/** Renews one lease now, for its handler. Rejects when it is lost; the row may be locked by the handler's own transaction, which keeps it, too. */
export async function extendLease({ lane, names, clock }: ExtendParts, held: Held): Promise<void> {
  const { lease, leaseMs } = held
  const fence = { seq: lease.seq, token: lease.token }
  let sentAt = 0
  const rows = await lane.run(() => {
    sentAt = clock.now()
    return held.isLost ? null : extendLeases(names, [{ ...fence, leaseMs }])
  })
  if (rows.length > 0) {
    held.deadline = Math.max(held.deadline, sentAt + leaseMs)
    return
  }
  const still = held.isLost ? [] : await lane.run(holdsLeases(names, [fence]))
  if (still.length === 0)
    throw new LeaseLostError(`the lease on message ${lease.id} of "${lease.queue}" was taken over`)
}
