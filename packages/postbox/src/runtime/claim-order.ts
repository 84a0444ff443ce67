import { randomUUID } from 'node:crypto'
import { claimLimit } from '../core/prefetch.ts'
import {
  claimInOrder,
  type OrderedClaimRow,
  type OrderedMessageRow,
  type OrderedQueue,
  type OrderedQueueRow,
} from '../sql/claim-in-order.ts'
import { dateFrom } from '../sql/columns.ts'
import { joinKeys } from '../sql/join-keys.ts'
import { pauseFrom } from '../sql/pause-state.ts'
import { byDue, bySeq, type Found, leaseOf, localTime, type RoundState } from './claim-answer.ts'
import type { Demand } from './claim-memory.ts'
import type { Claimer } from './claimer.ts'
import { type Belated, type ClaimerParts, createBelated, giveBack, patiently } from './claiming.ts'
import { sent } from './failpoint.ts'
import { heldOf } from './held.ts'
import {
  beginRounds,
  createOrderMemory,
  forgetPlaces,
  type LookKind,
  learnPlace,
  type OrderMemory,
  placeOf,
  type Seen,
  seenBy,
  wantedOf,
} from './order-memory.ts'

/** Claims of queues that are in the order of their keys. */
export interface OrderedClaimer extends Omit<Claimer, 'claimFresh'> {
  /** The last row of a key that was held here is gone: what comes next of it is this process' to take. */
  keySettled(queue: string, key: string, seq: string): void
  /**
   * The next sweep begins a round, whatever the last one came to: one that is under way has passed keys and rows that something was committed to since.
   * (Fresh rows are looked for from the floor with every sweep, but not all of them, while an old transaction holds it back.)
   */
  beginRound(): void
}

const notOver: RoundState = { isOver: false, isEmpty: false }
const over: RoundState = { isOver: true, isEmpty: true }

interface Answer {
  readonly kind: LookKind
  readonly rows: readonly OrderedClaimRow[]
  readonly asked: readonly OrderedQueue[]
  readonly token: string
  readonly sentAt: number
  readonly receivedAt: number
}

export function createOrderedClaimer(
  parts: ClaimerParts,
  belated: Belated = createBelated(),
): OrderedClaimer {
  const memory = createOrderMemory(parts.lane.connection)
  let isRoundDue = false
  const look = async (demands: readonly Demand[], kind: LookKind): Promise<readonly Found[]> => {
    const answer = await patiently(memory, () => send(parts, memory, { demands, kind }))
    const queues = answer.rows.filter((row) => row.kind === 'queue')
    const [first] = queues
    const seen = first === undefined ? null : seenBy(memory, first, answer.sentAt)
    const joining = queues
      .filter((row) => Number(row.joining) > 0 && pauseFrom(row.pause)?.isPaused !== true)
      .map(({ queue }) => queue)
    const found = queues.map((row) => foundIn(memory, row, { ...answer, seen }))
    if (joining.length === 0) return found
    const joined = await belated.after(found, joinNow(parts, joining), 0)
    return found.map((one) => (joining.includes(one.queue) ? withJoined(one, joined, answer) : one))
  }
  return {
    get sweepMs() {
      return memory.sweepMs
    },
    async claim(demands, kind) {
      belated.tell()
      if (kind === 'sweep' && isRoundDue) beginRounds(memory)
      if (kind === 'sweep') isRoundDue = false
      const startedAt = parts.clock.now()
      const found = await look(demands, kind)
      if (kind === 'claim') return found
      memory.sweepMs = parts.clock.now() - startedAt
      // Where the sweep has ended a round, a walk would begin the next, and nobody would hear of the end.
      const going = demands.filter(({ queue }) => !isOver(found, queue))
      const roomy = going
        .map((demand) => less(demand, takenOf(found, demand.queue)))
        .filter(({ room }) => room > 0)
      if (roomy.length === 0) return found
      // What has been claimed goes to its handlers, whatever happens here: else it would wait for its lease to end, and its key with it.
      return together(found, await belated.after<readonly Found[]>(found, look(roomy, 'walk'), []))
    },
    keySettled(queue, key, seq) {
      placeOf(memory, queue).settled.set(key, seq)
    },
    beginRound() {
      isRoundDue = true
    },
  }
}

function isOver(found: readonly Found[], queue: string): boolean {
  return found.some((one) => one.queue === queue && one.round?.isOver === true)
}

function takenOf(found: readonly Found[], queue: string): number {
  return found.find((one) => one.queue === queue)?.held.length ?? 0
}

function less(demand: Demand, taken: number): Demand {
  return { ...demand, room: Math.max(0, demand.room - taken) }
}

/** What a sweep and its walk have found, queue by queue. */
function together(swept: readonly Found[], walked: readonly Found[]): readonly Found[] {
  return swept.map((found) => {
    const more = walked.find(({ queue }) => queue === found.queue)
    if (more === undefined) return found
    return {
      queue: found.queue,
      held: [...found.held, ...more.held],
      isFull: found.isFull || more.isFull,
      round: more.round ?? notOver,
      nextDueAt: more.nextDueAt,
      pause: more.pause,
    }
  })
}

async function send(
  parts: ClaimerParts,
  memory: OrderMemory,
  { demands, kind }: { readonly demands: readonly Demand[]; readonly kind: LookKind },
): Promise<Answer> {
  const { lane, names, clock, generation = null, failpoint } = parts
  const token = randomUUID()
  let sentAt = 0
  let asked: readonly OrderedQueue[] = []
  if (failpoint) await failpoint.reach('before_claim')
  const answer = lane.run(
    () => {
      if (lane.connection !== memory.connection) forgetPlaces(memory)
      memory.connection = lane.connection
      sentAt = clock.now()
      const limit = claimLimit(demands.length)
      asked = demands.map((demand) =>
        wantedOf(placeOf(memory, demand.queue), { ...demand, room: Math.min(demand.room, limit) }, kind),
      )
      return claimInOrder(names, { token, queues: asked, generation })
    },
    { patience: memory.patience, late: (rows) => void giveBack(parts, rows, token) },
  )
  const rows = await sent(answer, failpoint, 'claim_sent')
  if (failpoint) await failpoint.reach('after_claim')
  return { kind, rows, asked, token, sentAt, receivedAt: clock.now() }
}

function foundIn(
  memory: OrderMemory,
  row: OrderedQueueRow,
  { kind, rows, asked: all, token, seen, sentAt, receivedAt }: Answer & { readonly seen: Seen | null },
): Found {
  const pause = pauseFrom(row.pause)
  // Nothing was looked at, and nothing may be learnt of it.
  if (pause?.isPaused)
    return { queue: row.queue, held: [], isFull: false, round: over, nextDueAt: null, pause }
  const place = placeOf(memory, row.queue)
  const asked = all.find(({ queue }) => queue === row.queue)
  const own = rows.filter(
    (one): one is OrderedMessageRow => one.kind === 'message' && one.queue === row.queue,
  )
  const due = own.filter((message) => message.due !== null).sort(byDue)
  const fresh = own.filter((message) => message.due === null).sort(bySeq)
  const lastDue = due.at(-1)?.due
  const looked = { kind, row, seen, found: own.length, lastDueMs: lastDue == null ? null : Number(lastDue) }
  const round = asked === undefined ? notOver : learnPlace(place, { ...looked, asked })
  const claimedAt = dateFrom(row.now)
  const hasTakenAll = own.length >= (asked?.room ?? 0)
  const isLeft = row.leftover === 'true'
  // The cursor may not get past what others have locked while their transaction is open: the next claim would find the same.
  const isLocked = isLeft && own.length === 0
  const nextDueAt = localTime(sentAt, row.nextdue)
  return {
    queue: row.queue,
    held: [...due, ...fresh].map((message) =>
      heldOf(
        leaseOf(message, { token, claimedAt, isOrdered: message.key !== null, afterDead: message.afterdead }),
        asked?.leaseMs ?? 0,
        sentAt,
      ),
    ),
    // A sweep and its walk go on with the next: nothing is known to be there.
    isFull: hasTakenAll || (row.more === 'true' && kind === 'claim' && !isLocked) || place.settled.size > 0,
    round,
    nextDueAt: isLeft && !hasTakenAll ? soon(receivedAt, nextDueAt) : nextDueAt,
    pause,
  }
}

/** How many took their place in their key. */
async function joinNow(
  { lane, names, generation = null }: ClaimerParts,
  queues: readonly string[],
): Promise<number> {
  const rows = await lane.run(joinKeys(names, { queues, generation }))
  return rows[0]?.joined ?? 0
}

// What somebody has locked, and a key that somebody is publishing to, is tried again.
const againMs = 50

function soon(receivedAt: number, nextDueAt: number | null): number {
  const again = receivedAt + againMs
  return Math.min(again, nextDueAt ?? again)
}

function withJoined(found: Found, joined: number, { receivedAt }: Answer): Found {
  if (joined > 0) return { ...found, isFull: true }
  return { ...found, nextDueAt: soon(receivedAt, found.nextDueAt) }
}
