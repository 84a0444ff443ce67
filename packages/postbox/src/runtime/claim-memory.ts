import { advance, type Cursor, fromStart, raiseFloor } from '../core/cursor.ts'
import { type FirstSeen, type Horizon, horizonOf, parseSnapshot } from '../core/horizon.ts'
import { claimLimit } from '../core/prefetch.ts'
import type { ClaimedQueue } from '../sql/claim-messages.ts'
import type { Answer, QueueFound } from './claim-answer.ts'

/** What a claim may take of a queue. */
export interface Demand {
  readonly queue: string
  readonly room: number
  readonly leaseMs: number
  /** The queue is in the order of its keys. */
  readonly isOrdered?: boolean
}

/** What claims have learnt, and the next ones begin with. */
export interface ClaimMemory {
  places: Map<string, Place>
  firstSeen: FirstSeen
  /** The sequence's value at the last claim. */
  top: bigint
  /** The connection that all this was learnt on. */
  connection: number
  /** Messages of newer generations are left where they are: they must not be looked at again with every claim. */
  readonly leavesNewer: boolean
  sweeps: number
  sweepMs: number
  /** How many times its usual deadline a claim may take: it grows while they time out, or one that needs longer would never succeed. */
  patience: number
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

export function createMemory(connection: number, leavesNewer: boolean): ClaimMemory {
  const learnt = { places: new Map(), firstSeen: new Map(), top: 0n, connection }
  return { ...learnt, leavesNewer, sweeps: 0, sweepMs: 0, patience: 1 }
}

/** Another server may have given sequence values out again (fail-over to a lagging standby, a restore): they lie below every cursor. */
export function forget(memory: ClaimMemory): void {
  memory.places = new Map()
  memory.firstSeen = new Map()
  memory.top = 0n
}

/** What to ask for, by all that is known. */
export function wanted(
  { places, sweeps }: ClaimMemory,
  demands: readonly Demand[],
  isSweep: boolean,
): readonly ClaimedQueue[] {
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

export function learn(memory: ClaimMemory, found: readonly QueueFound[], answer: Answer): void {
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
    // Nothing was looked for there: what came meanwhile lies where claims go on when it is resumed, and is not left to the sweeps.
    if (queue.pause?.isPaused) continue
    const place = memory.places.get(queue.row.queue) ?? start
    memory.places.set(
      queue.row.queue,
      placeAfter(place, queue, { ...memory, ...answer, horizon, topBefore: memory.top }),
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
  readonly leavesNewer: boolean
}

function placeAfter(place: Place, found: QueueFound, at: Circumstances): Place {
  const { row, fresh, isFull } = found
  const { horizon, topBefore, isSweep, leavesNewer } = at
  const own = BigInt(row.own)
  const lastFresh = fresh.at(-1)
  const last = lastFresh === undefined ? null : BigInt(lastFresh.seq)
  const lowest = row.lowest === null ? null : BigInt(row.lowest)
  const seenDue = lastDueSeen(found, leavesNewer)
  const dueFromMs = Number(seenDue) - dueSlackMs
  return {
    cursor: advance(place.cursor, { last, isFull, own, horizon: horizon.patient, topBefore }),
    floor: isSweep
      ? raiseFloor(place.floor, { lowest, own, horizon: horizon.strict, topBefore })
      : place.floor,
    dueFromMs: seenDue === null ? place.dueFromMs : Math.max(dueFromMs, place.dueFromMs ?? dueFromMs),
  }
}

/**
 * Up to where the due lane was looked through: to the last row that came of it. One that left rows where they are, and had room for more, has
 * seen all that was due: else every claim would read what the first one left (50 ms against 4, for 100,000 of a newer generation).
 */
function lastDueSeen({ row, fresh, due, isFull }: QueueFound, leavesNewer: boolean): string | null {
  // What is due goes before what is fresh.
  const sawAll = !isFull || fresh.length > 0
  return leavesNewer && sawAll ? row.now : (due.at(-1)?.due ?? null)
}
