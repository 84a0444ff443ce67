// Path 4/7 · claim: free slots → leases, of all queues with one statement.
import { randomUUID } from 'node:crypto'
import { OutboxError } from '../core/errors.ts'
import { type ClaimedQueue, type ClaimRow, claimMessages } from '../sql/claim-messages.ts'
import type { Names } from '../sql/names.ts'
import { releaseLeases } from '../sql/release-leases.ts'
import { type Answer, type Found, foundOf, isMessage, queuesOf } from './claim-answer.ts'
import { type ClaimMemory, createMemory, type Demand, forget, learn, wanted } from './claim-memory.ts'
import type { Clock } from './clock.ts'
import { type Failpoint, sent } from './failpoint.ts'
import type { Lane } from './lane.ts'

export type { Demand, Found }

export interface Claimer {
  /**
   * One statement. From the cursors, where claims are cheap; or a sweep, of everything: rows that committed late, rows of dead processes and
   * released rows lie below the cursors.
   */
  claim(demands: readonly Demand[], kind: 'claim' | 'sweep'): Promise<readonly Found[]>
  /** How long the last sweep took, in milliseconds. */
  readonly sweepMs: number
}

export interface ClaimerParts {
  readonly lane: Pick<Lane, 'run' | 'connection'>
  readonly names: Names
  readonly clock: Clock
  /** Claims nothing of a newer one; null: whatever there is. */
  readonly generation?: number | null
  readonly failpoint?: Failpoint | undefined
}

const mostPatience = 32

export function createClaimer(parts: ClaimerParts): Claimer {
  const memory = createMemory(parts.lane.connection, (parts.generation ?? null) !== null)
  return {
    get sweepMs() {
      return memory.sweepMs
    },
    async claim(demands, kind) {
      const order = { demands, isSweep: kind === 'sweep', token: randomUUID() }
      const answer = await send(parts, memory, order).catch((error) => {
        if (OutboxError.is(error, 'OUTBOX_STATEMENT_TIMEOUT'))
          memory.patience = Math.min(mostPatience, memory.patience * 2)
        throw error
      })
      memory.patience = 1
      const found = queuesOf(answer)
      learn(memory, found, answer)
      return found.map((queue) => foundOf(queue, answer))
    },
  }
}

interface Order {
  readonly demands: readonly Demand[]
  readonly isSweep: boolean
  readonly token: string
}

async function send(parts: ClaimerParts, memory: ClaimMemory, order: Order): Promise<Answer> {
  const { lane, names, clock, generation = null, failpoint } = parts
  const { demands, isSweep, token } = order
  if (failpoint) await failpoint.reach('before_claim')
  let sentAt = 0
  let asked: readonly ClaimedQueue[] = []
  const answer = lane.run(
    () => {
      if (lane.connection !== memory.connection) forget(memory)
      memory.connection = lane.connection
      sentAt = clock.now()
      asked = wanted(memory, demands, isSweep)
      if (isSweep) memory.sweeps++
      return claimMessages(names, { token, queues: asked, generation })
    },
    { patience: memory.patience, late: (rows) => void giveBack(parts, rows, token) },
  )
  const rows = await sent(answer, failpoint, 'claim_sent')
  if (failpoint) await failpoint.reach('after_claim')
  return { rows, asked, token, isSweep, sentAt, receivedAt: clock.now() }
}

/** Nobody waits for these rows any more, and they would wait for their leases to end. Better without the names of their timers than not at all. */
async function giveBack(
  { lane, names }: ClaimerParts,
  rows: readonly ClaimRow[],
  token: string,
): Promise<void> {
  const fences = rows.filter(isMessage).map(({ seq }) => ({ seq, token }))
  if (fences.length === 0) return
  await lane
    .run(releaseLeases(names, fences, true))
    .catch(() => lane.run(releaseLeases(names, fences, false)))
    .catch(() => {})
}
