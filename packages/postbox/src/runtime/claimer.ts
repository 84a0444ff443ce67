// Path 4/7 · claim: free slots → leases, of all queues with one statement.
import { randomUUID } from 'node:crypto'
import { type ClaimedQueue, claimMessages } from '../sql/claim-messages.ts'
import { type Answer, type Found, foundOf, queuesOf } from './claim-answer.ts'
import { type ClaimMemory, createMemory, type Demand, forget, learn, wanted } from './claim-memory.ts'
import { type ClaimerParts, giveBack, patiently } from './claiming.ts'
import { sent } from './failpoint.ts'

export type { ClaimerParts, Demand, Found }

export interface Claimer {
  /**
   * One statement. From the cursors, where claims are cheap; or a sweep, of everything: rows that committed late, rows of dead processes and
   * released rows lie below the cursors.
   */
  claim(demands: readonly Demand[], kind: 'claim' | 'sweep'): Promise<readonly Found[]>
  /** How long the last sweep took, in milliseconds. */
  readonly sweepMs: number
}

export function createClaimer(parts: ClaimerParts): Claimer {
  const memory = createMemory(parts.lane.connection, (parts.generation ?? null) !== null)
  return {
    get sweepMs() {
      return memory.sweepMs
    },
    async claim(demands, kind) {
      const order = { demands, isSweep: kind === 'sweep', token: randomUUID() }
      const answer = await patiently(memory, () => send(parts, memory, order))
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
