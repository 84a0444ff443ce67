import type { Teller } from '../core/events.ts'
import { ofMessage } from '../core/of-message.ts'
import { countDelivery } from '../sql/count-delivery.ts'
import type { Names } from '../sql/names.ts'
import type { Held } from './held.ts'
import type { Lane } from './lane.ts'
import { loseHeld } from './lease-keeper.ts'

export interface CountParts {
  readonly lane: Pick<Lane, 'run'>
  readonly names: Names
  readonly teller: Teller
}

/**
 * Counts the delivery of a suspect, right before its handler is run. False: it must not be run. Its lease is lost, or nobody knows whether
 * it is counted: whoever gives it back puts the count back, too. Never rejects.
 */
export async function countSuspect({ lane, names, teller }: CountParts, held: Held): Promise<boolean> {
  const { seq, token, deliveries } = held.lease
  try {
    // When its turn comes: a renewal may have found it lost by then.
    const rows = await lane.run(() => (held.isLost ? null : countDelivery(names, { seq, token, deliveries })))
    if (rows.length > 0) return !held.isLost
    if (!held.isLost) loseHeld(held, teller)
  } catch (error) {
    const message = 'a delivery could not be counted: the message is not run, and given back'
    teller.tell({ kind: 'warning', code: 'count_failed', message, fields: ofMessage(held.lease), error })
  }
  return false
}
