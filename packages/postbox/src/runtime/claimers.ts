import { createOrderedClaimer, type OrderedClaimer } from './claim-order.ts'
import { type Claimer, createClaimer, type Demand, type Found } from './claimer.ts'
import { type Belated, type ClaimerParts, createBelated } from './claiming.ts'

/** Claims of all queues: one statement for those without an order, one for those in the order of their keys. */
export interface Claimers extends Claimer {
  readonly keySettled: OrderedClaimer['keySettled']
  readonly beginRound: OrderedClaimer['beginRound']
  /** What failed after something had been claimed: the next claim throws it. */
  readonly belated: Pick<Belated, 'isUntold' | 'tell'>
}

export function createClaimers(parts: ClaimerParts): Claimers {
  const plain = createClaimer(parts)
  const belated = createBelated()
  const ordered = createOrderedClaimer(parts, belated)
  return {
    get sweepMs() {
      return plain.sweepMs + ordered.sweepMs
    },
    keySettled: ordered.keySettled,
    beginRound: ordered.beginRound,
    belated,
    claimFresh: plain.claimFresh,
    async claim(demands, kind) {
      belated.tell()
      const [free, inOrder] = parted(demands)
      if (inOrder.length === 0) return plain.claim(free, kind)
      const found = free.length === 0 ? [] : await plain.claim(free, kind)
      return [...found, ...(await belated.after<readonly Found[]>(found, ordered.claim(inOrder, kind), []))]
    },
  }
}

function parted(demands: readonly Demand[]): readonly [free: readonly Demand[], inOrder: readonly Demand[]] {
  return [demands.filter(({ isOrdered }) => !isOrdered), demands.filter(({ isOrdered }) => isOrdered)]
}
