// Path 4/7 · claim: free slots → leases, of all queues with one statement.
import { randomUUID } from 'node:crypto'
import { compareSeq } from '../core/batching.ts'
import { advance, type Cursor, fromStart, raiseFloor } from '../core/cursor.ts'
import { OutboxError } from '../core/errors.ts'
import { type FirstSeen, type Horizon, horizonOf, parseSnapshot } from '../core/horizon.ts'
import type { Lease } from '../core/lease.ts'
import { claimLimit } from '../core/prefetch.ts'
import {
  type ClaimedQueue,
  type ClaimRow,
  claimMessages,
  type MessageRow,
  type QueueRow,
} from '../sql/claim-messages.ts'
import { bytesFrom, dateFrom, headersFrom, numberFrom } from '../sql/columns.ts'
import type { Names } from '../sql/names.ts'
import { releaseLeases } from '../sql/release-leases.ts'
import type { Clock } from './clock.ts'
import { type Failpoint, sent } from './failpoint.ts'
import { type Held, heldOf } from './held.ts'
import type { Lane } from './lane.ts'

/** What a claim may take of a queue. */
export interface Demand {
  readonly queue: string
  readonly room: number
  readonly leaseMs: number
}

/** What a claim found in a queue. */
export interface Found {
  readonly queue: string
  /** What is due first, then what is fresh, each oldest first. */
  readonly held: readonly Held[]
  /** As many as it might take: there may be more. */
  readonly isFull: boolean
  /** When the next message is due, on the local clock; null: none waits. */
  readonly nextDueAt: number | null
}

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
  readonly failpoint?: Failpoint | undefined
}

/** Where claims of a queue begin. */
interface Place {
  readonly cursor: Cursor
  readonly floor: Cursor
  /** Due times are looked for from here on: retries leave dead entries at the low end (78 ms against 1, after 200,000 retries). */
  readonly dueFromMs: number | null
}

const start: Place = { cursor: fromStart, floor: fromStart, dueFromMs: null }
// Due rows appear late (their time counts from the start of a transaction), and an expired lease keeps its old one.
const dueSlackMs = 5_000
// A row that re-enters below the floor by somebody's own SQL is found all the same.
const sweepsPerFull = 10
const mostPatience = 32

export function createClaimer(parts: ClaimerParts): Claimer {
  const memory = createMemory(parts.lane)
  return {
    get sweepMs() {
      return memory.sweepMs
    },
    async claim(demands, kind) {
      const token = randomUUID()
      const answer = await send(parts, memory, { demands, isSweep: kind === 'sweep', token }).catch(
        (error) => {
          if (OutboxError.is(error, 'OUTBOX_STATEMENT_TIMEOUT'))
            memory.patience = Math.min(mostPatience, memory.patience * 2)
          throw error
        },
      )
      memory.patience = 1
      const found = queuesOf(answer)
      learn(memory, found, answer)
      return found.map((queue) => foundOf(queue, token, answer))
    },
  }
}

/** What claims have learnt, and the next ones begin with. */
interface Memory {
  places: Map<string, Place>
  firstSeen: FirstSeen
  /** The sequence's value at the last claim. */
  top: bigint
  /** The connection that all this was learnt on. */
  connection: number
  sweeps: number
  sweepMs: number
  /** How many times its usual deadline a claim may take: it grows while they time out, or one that needs longer would never succeed. */
  patience: number
}

function createMemory({ connection }: Pick<Lane, 'connection'>): Memory {
  return { places: new Map(), firstSeen: new Map(), top: 0n, connection, sweeps: 0, sweepMs: 0, patience: 1 }
}

/** Another server may have given sequence values out again (fail-over to a lagging standby, a restore): they lie below every cursor. */
function forget(memory: Memory): void {
  memory.places = new Map()
  memory.firstSeen = new Map()
  memory.top = 0n
}

interface Order {
  readonly demands: readonly Demand[]
  readonly isSweep: boolean
  readonly token: string
}

async function send(
  { lane, names, clock, failpoint }: ClaimerParts,
  memory: Memory,
  order: Order,
): Promise<Answer> {
  if (failpoint) await failpoint.reach('before_claim')
  let sentAt = 0
  let asked: readonly ClaimedQueue[] = []
  // Nobody waits for these rows any more, and they would wait for their leases to end.
  const late = (rows: readonly ClaimRow[]): void => {
    const fences = rows.filter(isMessage).map(({ seq }) => ({ seq, token: order.token }))
    if (fences.length > 0) lane.run(releaseLeases(names, fences)).catch(() => {})
  }
  const answer = lane.run(
    () => {
      if (lane.connection !== memory.connection) forget(memory)
      memory.connection = lane.connection
      sentAt = clock.now()
      asked = wanted(memory, order)
      if (order.isSweep) memory.sweeps++
      return claimMessages(names, { token: order.token, queues: asked })
    },
    { patience: memory.patience, late },
  )
  const rows = await sent(answer, failpoint, 'claim_sent')
  if (failpoint) await failpoint.reach('after_claim')
  return { rows, asked, isSweep: order.isSweep, sentAt, receivedAt: clock.now() }
}

function wanted({ places, sweeps }: Memory, { demands, isSweep }: Order): readonly ClaimedQueue[] {
  const limit = claimLimit(demands.length)
  return demands.map(({ queue, room, leaseMs }) => {
    const { cursor, floor, dueFromMs } = places.get(queue) ?? start
    const lowest = sweeps % sweepsPerFull === 0 ? fromStart : floor
    return {
      queue,
      room: Math.min(room, limit),
      leaseMs,
      after: String((isSweep ? lowest : cursor).after),
      dueFromMs: isSweep ? null : dueFromMs,
      sweep: isSweep,
    }
  })
}

function learn(memory: Memory, found: readonly QueueFound[], answer: Answer): void {
  const [first] = found
  if (first === undefined) return
  const top = BigInt(first.row.top)
  // Nothing of this answer may be remembered either: it may hold a row from before.
  if (top < memory.top) {
    forget(memory)
    return
  }
  // By when it was sent: a transaction must not look old because an answer took long.
  const horizon = horizonOf(parseSnapshot(first.row.snapshot), memory.firstSeen, answer.sentAt)
  memory.firstSeen = horizon.firstSeen
  for (const queue of found) {
    const place = memory.places.get(queue.row.queue) ?? start
    memory.places.set(
      queue.row.queue,
      placeAfter(place, queue, { horizon, topBefore: memory.top, ...answer }),
    )
  }
  memory.top = top
  if (!answer.isSweep) return
  memory.sweepMs = answer.receivedAt - answer.sentAt
}

interface Circumstances {
  readonly horizon: Horizon
  readonly topBefore: bigint
  readonly isSweep: boolean
}

function placeAfter(place: Place, { row, fresh, due, isFull }: QueueFound, at: Circumstances): Place {
  const { horizon, topBefore, isSweep } = at
  const own = BigInt(row.own)
  const lastFresh = fresh.at(-1)
  const lastDue = due.at(-1)
  const last = lastFresh === undefined ? null : BigInt(lastFresh.seq)
  const lowest = row.lowest === null ? null : BigInt(row.lowest)
  const dueFromMs = Number(lastDue?.due) - dueSlackMs
  return {
    cursor: advance(place.cursor, { last, isFull, own, horizon: horizon.patient, topBefore }),
    floor: isSweep
      ? raiseFloor(place.floor, { lowest, own, horizon: horizon.strict, topBefore })
      : place.floor,
    dueFromMs: lastDue === undefined ? place.dueFromMs : Math.max(dueFromMs, place.dueFromMs ?? dueFromMs),
  }
}

interface Answer {
  readonly rows: readonly ClaimRow[]
  readonly asked: readonly ClaimedQueue[]
  readonly isSweep: boolean
  readonly sentAt: number
  readonly receivedAt: number
}

/** One queue's part of an answer. */
interface QueueFound {
  readonly row: QueueRow
  readonly fresh: readonly MessageRow[]
  readonly due: readonly MessageRow[]
  readonly isFull: boolean
  readonly leaseMs: number
}

function queuesOf({ rows, asked }: Answer): readonly QueueFound[] {
  const messages = new Map<string, MessageRow[]>(asked.map(({ queue }) => [queue, []]))
  for (const row of rows.filter(isMessage)) messages.get(row.queue)?.push(row)
  const demands = new Map(asked.map((demand) => [demand.queue, demand]))
  return rows
    .filter((row) => row.kind === 'queue')
    .map((row) => {
      const own = messages.get(row.queue) ?? []
      const { room = 0, leaseMs = 0 } = demands.get(row.queue) ?? {}
      const fresh = own.filter(({ due }) => due === null).sort(bySeq)
      const due = own.filter((message) => message.due !== null).sort(byDue)
      return { row, fresh, due, isFull: own.length >= room, leaseMs }
    })
}

function isMessage(row: ClaimRow): row is MessageRow {
  return row.kind === 'message'
}

function foundOf(found: QueueFound, token: string, { sentAt, receivedAt }: Answer): Found {
  const { row, fresh, due, isFull, leaseMs } = found
  return {
    queue: row.queue,
    held: [...due, ...fresh].map((message) => heldOf(leaseOf(message, token), leaseMs, sentAt)),
    isFull,
    nextDueAt: row.nextdue === null ? null : receivedAt + Number(row.nextdue),
  }
}

function leaseOf(row: MessageRow, token: string): Lease {
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
function bySeq(a: MessageRow, b: MessageRow): number {
  return compareSeq(a.seq, b.seq)
}

function byDue(a: MessageRow, b: MessageRow): number {
  return Number(a.due) - Number(b.due) || bySeq(a, b)
}
