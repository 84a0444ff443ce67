// Path 4/7 · claim: free slots → leases.
import { randomUUID } from 'node:crypto'
import type { Executor } from '../adapters/executor.ts'
import type { Lease } from '../core/lease.ts'
import { type ClaimedRow, claimMessages, type Lane } from '../sql/claim-messages.ts'
import { bytesFrom, dateFrom, headersFrom, numberFrom } from '../sql/columns.ts'
import type { Names } from '../sql/names.ts'
import type { Subscription } from './subscription.ts'

export interface Claimer {
  /** Up to `slots` leases: what is due first, then fresh ones, each oldest first. Claims nothing more once halted. */
  claim(slots: number, halt: AbortSignal): Promise<readonly Lease[]>
}

export function createClaimer(executor: Executor, names: Names, subscription: Subscription): Claimer {
  const { queue, settings } = subscription
  const claimLane = async (lane: Lane, limit: number): Promise<readonly Lease[]> => {
    const token = randomUUID()
    const rows = await executor.run(
      claimMessages(names, { queue, lane, limit, token, leaseMs: settings.leaseMs }),
    )
    return rows.map((row) => leaseOf(row, token)).sort(bySeq)
  }
  return {
    async claim(slots, halt) {
      // What was promised for a time comes first: a backlog of fresh messages must not make every timer late.
      const due = await claimLane('due', slots)
      if (due.length === slots || halt.aborted) return due
      try {
        return [...due, ...(await claimLane('fresh', slots - due.length))]
      } catch (error) {
        // Those that were claimed must run now, or they would wait for their lease to end. The next claim fails again, if it must.
        if (due.length > 0) return due
        throw error
      }
    },
  }
}

function leaseOf(row: ClaimedRow, token: string): Lease {
  return {
    token,
    id: row.id,
    seq: row.seq,
    queue: row.queue,
    key: row.key,
    body: bytesFrom(row.body),
    headers: headersFrom(row.headers),
    attempt: Number(row.attempts) + 1,
    deliveries: Number(row.deliveries),
    createdAt: dateFrom(row.created),
    generation: numberFrom(row.generation),
  }
}

// An update by ctid returns rows in physical order, which is not the order of seq once pages are reused.
function bySeq(a: Lease, b: Lease): number {
  const [x, y] = [BigInt(a.seq), BigInt(b.seq)]
  return x < y ? -1 : x > y ? 1 : 0
}
