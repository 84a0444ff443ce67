import { LeaseLostError } from '../core/errors.ts'
import { extendLeases, holdsLeases, mostExtended } from '../sql/extend-leases.ts'
import type { Names } from '../sql/names.ts'
import type { Clock } from './clock.ts'
import type { Held } from './held.ts'
import type { Lane } from './lane.ts'

export interface ExtendParts {
  readonly lane: Pick<Lane, 'run'>
  readonly names: Names
  readonly clock: Pick<Clock, 'now'>
}

/**
 * Renews the leases of a delivery now, for its handler. Rejects when one is lost; a row may be locked by the handler's own transaction,
 * which keeps it, too.
 */
export async function extendNow(parts: ExtendParts, helds: readonly Held[]): Promise<void> {
  for (let from = 0; from < helds.length; from += mostExtended)
    await extendSome(parts, helds.slice(from, from + mostExtended))
}

async function extendSome({ lane, names, clock }: ExtendParts, helds: readonly Held[]): Promise<void> {
  let sentAt = 0
  const rows = await lane.run(() => {
    sentAt = clock.now()
    const ours = helds.filter(({ isLost }) => !isLost)
    return ours.length === 0 ? null : extendLeases(names, ours.map(extensionOf))
  })
  const extended = new Set(rows.map(({ seq }) => seq))
  for (const held of helds)
    if (extended.has(held.lease.seq)) held.deadline = Math.max(held.deadline, sentAt + held.leaseMs)
  const missing = helds.filter(({ lease, isLost }) => isLost || !extended.has(lease.seq))
  if (missing.length > 0) await assertHeld({ lane, names }, missing)
}

async function assertHeld(
  { lane, names }: Pick<ExtendParts, 'lane' | 'names'>,
  missing: readonly Held[],
): Promise<void> {
  const asked = missing.filter(({ isLost }) => !isLost)
  const still = asked.length === 0 ? [] : await lane.run(holdsLeases(names, asked.map(extensionOf)))
  const seqs = new Set(still.map(({ seq }) => seq))
  const lost = missing.find(({ lease, isLost }) => isLost || !seqs.has(lease.seq))
  if (lost === undefined) return
  const { id, queue } = lost.lease
  throw new LeaseLostError(`the lease on message ${id} of "${queue}" was taken over`)
}

function extensionOf({ lease, leaseMs }: Held): { seq: string; token: string; leaseMs: number } {
  return { seq: lease.seq, token: lease.token, leaseMs }
}
