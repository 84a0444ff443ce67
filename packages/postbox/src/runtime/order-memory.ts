import { advance, type Cursor, fromStart } from '../core/cursor.ts'
import { type FirstSeen, type Horizon, horizonOf, parseSnapshot } from '../core/horizon.ts'
import type { OrderedQueue, OrderedQueueRow, SettledKey } from '../sql/claim-in-order.ts'
import type { RoundState } from './claim-answer.ts'
import type { Demand } from './claim-memory.ts'

/**
 * What a look is for. `claim`: what is cheap to find. `sweep`: all that may have been committed without a word, and first rows of keys that nobody knows
 * of. `walk`: the same of messages without a key, which no index of keys leads to.
 */
export type LookKind = 'claim' | 'sweep' | 'walk'

/** Where looks at an ordered queue begin. */
export interface Place {
  /** Of claims. What lies below has been seen: it waits for others of its key, or is somebody's. */
  cursor: Cursor
  /** Of sweeps: the same, without giving any transaction up. */
  floor: Cursor
  dueFromMs: number | null
  /** Sweeps hop from key to key, and walks go from row to row, some thousand at a time: where the next goes on. */
  keysFrom: string
  walkFrom: string
  /** Since they began at the first key and the first row, if they have: what is left to see, and whether nothing has been found. */
  round: { isBegun: boolean; hasKeys: boolean; hasRows: boolean; isEmpty: boolean }
  /** A round that was asked for has ended empty, and nothing has been found since: kept while the rounds of other queues go on. */
  isEmpty: boolean
  /** Keys whose last row here is gone, and its seq. */
  readonly settled: Map<string, string>
  /** So many of them at most are asked for next: fresh rows get half of the room, and it is no use to look for twice as many as the other half takes. */
  mostKeys: number
}

export interface OrderMemory {
  readonly places: Map<string, Place>
  firstSeen: FirstSeen
  /** The sequence's value at the last look. */
  top: bigint
  connection: number
  sweepMs: number
  /** How many times its usual deadline a claim may take. */
  patience: number
}

// Due rows appear late: their time counts from the start of a transaction.
const dueSlackMs = 5_000
// What is asked for with one claim, for the rest comes with the next: about as many as there is room for. Most have a next one, or none has.
const mostSettled = 1_000
const fewSettled = 16
const spareKeys = 50

export function createOrderMemory(connection: number): OrderMemory {
  return { places: new Map(), firstSeen: new Map(), top: 0n, connection, sweepMs: 0, patience: 1 }
}

export function placeOf({ places }: OrderMemory, queue: string): Place {
  const known = places.get(queue)
  if (known !== undefined) return known
  const start = { cursor: fromStart, floor: fromStart, dueFromMs: null, keysFrom: '', walkFrom: '0' }
  const place: Place = {
    ...start,
    round: newRound(),
    isEmpty: false,
    settled: new Map(),
    mostKeys: mostSettled,
  }
  places.set(queue, place)
  return place
}

function newRound(): Place['round'] {
  return { isBegun: false, hasKeys: true, hasRows: true, isEmpty: true }
}

function beginRound(place: Place): void {
  place.round = newRound()
  place.keysFrom = ''
  place.walkFrom = '0'
}

/** Of all queues: what is known of rounds before is no answer to who asks now. */
export function beginRounds({ places }: OrderMemory): void {
  for (const place of places.values()) {
    beginRound(place)
    place.isEmpty = false
  }
}

/** Another server may have given sequence values out again: what is known of places is worth nothing. Which keys go on is. */
export function forgetPlaces(memory: OrderMemory): void {
  for (const place of memory.places.values()) {
    place.cursor = fromStart
    place.floor = fromStart
    place.dueFromMs = null
    for (const key of place.settled.keys()) place.settled.set(key, '0')
  }
  memory.firstSeen = new Map()
  memory.top = 0n
}

export function wantedOf(place: Place, { queue, room, leaseMs }: Demand, kind: LookKind): OrderedQueue {
  const { cursor, floor, walkFrom, keysFrom, dueFromMs, settled } = place
  const after = { claim: String(cursor.after), sweep: String(floor.after), walk: walkFrom }[kind]
  return {
    queue,
    room,
    leaseMs,
    after,
    dueFromMs: kind === 'sweep' ? null : dueFromMs,
    keys: oldest(settled, Math.min(place.mostKeys, Math.max(fewSettled, room))),
    keysFrom: kind === 'sweep' ? keysFrom : null,
  }
}

/** Without a copy of all: there may be tens of thousands, of which some hundred are asked for. */
function oldest(settled: Place['settled'], most: number): readonly SettledKey[] {
  const keys: SettledKey[] = []
  for (const [key, after] of settled) {
    if (keys.length === most) break
    keys.push({ key, after })
  }
  return keys
}

export interface Seen {
  readonly horizon: Horizon
  readonly topBefore: bigint
}

/** What an answer tells of the server; null: it is another one, and nothing of the answer may be remembered. */
export function seenBy(memory: OrderMemory, row: OrderedQueueRow, sentAt: number): Seen | null {
  const top = BigInt(row.top)
  if (top < memory.top) {
    forgetPlaces(memory)
    return null
  }
  const horizon = horizonOf(parseSnapshot(row.snapshot), memory.firstSeen, sentAt)
  const topBefore = memory.top
  memory.firstSeen = horizon.firstSeen
  memory.top = top
  return { horizon, topBefore }
}

export interface Looked {
  readonly kind: LookKind
  readonly asked: OrderedQueue
  readonly row: OrderedQueueRow
  readonly seen: Seen | null
  readonly found: number
  /** The last due time among what was found, in milliseconds since 1970; null: none. */
  readonly lastDueMs: number | null
}

export function learnPlace(place: Place, { kind, asked, row, seen, found, lastDueMs }: Looked): RoundState {
  const hasMore = row.more === 'true'
  forgetSettled(place, { asked, row })
  if (seen !== null) {
    const last = row.reached === null ? null : BigInt(row.reached)
    const look = { last, isFull: hasMore, own: BigInt(row.own), topBefore: seen.topBefore }
    if (kind === 'sweep') place.floor = advance(place.floor, { ...look, horizon: seen.horizon.strict })
    if (kind === 'claim') place.cursor = advance(place.cursor, { ...look, horizon: seen.horizon.patient })
    if (lastDueMs !== null) place.dueFromMs = Math.max(lastDueMs - dueSlackMs, place.dueFromMs ?? 0)
  }
  // What was found before it began does not count: whoever waits until all is done would wait for another round.
  if (kind === 'sweep') place.round.isBegun = true
  const wasThere = found > 0 || Number(row.joining) > 0 || row.leftover === 'true'
  if (place.round.isBegun && wasThere) place.round.isEmpty = false
  if (wasThere) place.isEmpty = false
  if (kind === 'sweep') {
    place.keysFrom = row.lastkey ?? ''
    place.round.hasKeys &&= row.lastkey !== null
  }
  if (kind === 'walk') {
    place.walkFrom = hasMore ? (row.reached ?? '0') : '0'
    place.round.hasRows &&= hasMore
  }
  const isOver = !place.round.hasKeys && !place.round.hasRows
  if (isOver) {
    place.isEmpty = place.round.isEmpty
    beginRound(place)
  }
  return { isOver, isEmpty: place.isEmpty }
}

/** What was asked for is known now. Unless there was no room for it: the cursor may have passed it, and nothing else leads there but sweeps. */
function forgetSettled(place: Place, { asked, row }: Pick<Looked, 'asked' | 'row'>): void {
  const left = new Set<unknown>(JSON.parse(row.leftkeys ?? '[]'))
  for (const { key, after } of asked.keys) {
    if (place.settled.get(key) === after && !left.has(key)) place.settled.delete(key)
  }
  const enough = asked.keys.length - left.size + spareKeys
  place.mostKeys = left.size >= spareKeys ? Math.max(fewSettled, enough) : mostSettled
}
