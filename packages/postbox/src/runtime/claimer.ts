// Path 4/7 · claim: free slots → leases, of all queues with one statement.
import { randomUUID } from 'node:crypto'
import { claimFresh, type FreshRow } from '../sql/claim-fresh.ts'
import { type ClaimedQueue, type ClaimRow, claimMessages } from '../sql/claim-messages.ts'
import { dateFrom } from '../sql/columns.ts'
import { type Answer, bySeq, type Found, foundOf, leaseOf, queuesOf } from './claim-answer.ts'
import { type ClaimMemory, createMemory, type Demand, forget, learn, wanted } from './claim-memory.ts'
import { type ClaimerParts, giveBack, patiently } from './claiming.ts'
import { sent } from './failpoint.ts'
import { heldOf } from './held.ts'

export type { ClaimerParts, Demand, Found }

export interface Claimer {
  /**
   * One statement. From the cursors, where claims are cheap; or a sweep, of everything: rows that committed late, rows of dead processes and
   * released rows lie below the cursors.
   */
  claim(demands: readonly Demand[], kind: 'claim' | 'sweep'): Promise<readonly Found[]>
  /** What is fresh above the cursor of one queue, and nothing else: the least that can be asked. It teaches nothing, so a claim has to follow. */
  claimFresh(demand: Demand): Promise<Fresh>
  /** How long the last sweep took, in milliseconds. */
  readonly sweepMs: number
}

/** What is fresh in a queue. */
export type Fresh = Pick<Found, 'queue' | 'held' | 'isFull'>

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
    claimFresh: (demand) => patiently(memory, () => sendFresh(parts, memory, demand)),
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
      recall(memory, lane)
      sentAt = clock.now()
      asked = wanted(memory, demands, isSweep)
      if (isSweep) memory.sweeps++
      return claimMessages(names, { token, queues: asked, generation })
    },
    waitingFor(parts, memory, token),
  )
  const rows = await sent(answer, failpoint, 'claim_sent')
  if (failpoint) await failpoint.reach('after_claim')
  return { rows, asked, token, isSweep, sentAt, receivedAt: clock.now() }
}

async function sendFresh(parts: ClaimerParts, memory: ClaimMemory, demand: Demand): Promise<Fresh> {
  const { lane, names, clock, generation = null, failpoint } = parts
  const { queue, leaseMs } = demand
  const token = randomUUID()
  if (failpoint) await failpoint.reach('before_claim')
  let sentAt = 0
  let room = 0
  const answer = lane.run<FreshRow>(
    () => {
      recall(memory, lane)
      sentAt = clock.now()
      const [asked] = wanted(memory, [demand], false)
      if (asked === undefined) return null
      room = asked.room
      return claimFresh(names, { token, queue, room, leaseMs, after: asked.after, generation })
    },
    waitingFor(parts, memory, token),
  )
  const rows = await sent(answer, failpoint, 'claim_sent')
  if (failpoint) await failpoint.reach('after_claim')
  const held = [...rows]
    .sort(bySeq)
    .map((row) => heldOf(leaseOf(row, { token, claimedAt: dateFrom(row.now) }), leaseMs, sentAt))
  return { queue, held, isFull: held.length >= room }
}

function recall(memory: ClaimMemory, lane: ClaimerParts['lane']): void {
  if (lane.connection !== memory.connection) forget(memory)
  memory.connection = lane.connection
}

function waitingFor(parts: ClaimerParts, { patience }: ClaimMemory, token: string): Waiting {
  return { patience, late: (rows) => void giveBack(parts, rows, token) }
}

interface Waiting {
  readonly patience: number
  late(rows: readonly ClaimRow[]): void
}
