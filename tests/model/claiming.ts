// What a worker gets, and what it is told of it.
import type { Reduced } from './reducer.ts'
import {
  type Delivered,
  type Found,
  hoursFrom,
  type Lease,
  type Message,
  type Queue,
  type State,
  type Step,
  type Wanted,
} from './terms.ts'

/**
 * A claim leases up to `room` messages of each queue that is asked for. What was promised for a time goes before what is fresh, each in its
 * order; what somebody holds is left to him until his lease ends. Nobody but the claim may settle them until somebody else has claimed them.
 * For code of a generation, messages of newer ones are not there. Of a paused queue there is nothing to be had, and nothing is told.
 */
export function claim(state: State, step: Step & { readonly kind: 'claim' }): Reduced {
  const { claim, worker, generation } = step
  const visible = { ...state, messages: state.messages.filter((message) => isOurs(message, generation)) }
  const leases = step.wanted.flatMap((one) => {
    const lease = { claim, until: state.now + one.leaseMs }
    return takeable(visible, one).map(({ place }) => [place, lease] as const)
  })
  const after = leased(state, new Map(leases), worker)
  const found = step.wanted.map((one): Found => {
    if (isPaused(state, one.queue))
      return { queue: one.queue, messages: [], nextDue: null, lowest: null, isPaused: true }
    const own = takeable(visible, one).map((message) => toldOf(after, message))
    const lowest = one.sweep ? lowestOf(visible, one) : null
    return {
      queue: one.queue,
      messages: own,
      nextDue: nextDueOf(visible, one.queue),
      lowest,
      isPaused: false,
    }
  })
  return { state: after, answer: { kind: 'claimed', found } }
}

/** The messages at these places are a worker's, until somebody else claims them. */
export function leased(state: State, leases: ReadonlyMap<number, Lease>, worker: number): State {
  const messages = state.messages.map((message) => {
    const lease = leases.get(message.place)
    return lease === undefined ? message : delivered(message, lease)
  })
  const before = new Map(state.messages.map(({ place, deliveries }) => [place, deliveries]))
  const given = [...leases].map(([place, { claim }]) => ({
    ...{ place, claim, worker, isInHand: true },
    deliveriesBefore: before.get(place)!,
  }))
  return { ...state, messages, given: [...state.given, ...given] }
}

export function isPaused({ pauses }: State, queue: Queue): boolean {
  return pauses.get(queue)?.isPaused === true
}

export function isOurs(message: Message, generation: number | null): boolean {
  return generation === null || (message.generation ?? generation) <= generation
}

/** What a claim may have of a queue, in the order in which it is handed out. */
function takeable(state: State, { queue, room, after, dueFrom }: Wanted): readonly Message[] {
  const { messages, now } = state
  if (isPaused(state, queue)) return []
  const free = messages.filter((message) => message.queue === queue && isFree(state, message))
  const due = free
    .filter(({ dueAt }) => dueAt !== null && dueAt <= now && dueAt >= (dueFrom ?? Number.NEGATIVE_INFINITY))
    .sort((a, b) => Number(a.dueAt) - Number(b.dueAt) || a.place - b.place)
  const fresh = free.filter(({ dueAt, place }) => dueAt === null && place > after)
  return [...due, ...fresh].slice(0, room)
}

/** Nobody holds it. A lease that has ended counts as none. */
export function isFree({ now }: State, { lease }: Message): boolean {
  return lease === null || lease.until < now
}

/** One of its deliveries had neither success nor failure, nor was it given back: whoever had it has crashed, or lost it. */
function isSuspect({ deliveries, attempts }: Message): boolean {
  return deliveries > attempts
}

/**
 * Counted by the claim itself: a message that kills its process must use a delivery up. But not of a suspect, which is counted when it is
 * run. A timer gives its name up to whoever wants it.
 */
function delivered(message: Message, lease: Message['lease']): Message {
  return {
    ...message,
    lease,
    deliveries: message.deliveries + (isSuspect(message) ? 0 : 1),
    timer: null,
    firedTimer: message.timer ?? message.firedTimer,
  }
}

/** What is told of a message that is claimed; `before`: what it was until then. */
export function toldOf({ messages, now }: State, before: Message): Delivered {
  const { place } = before
  const message = messages.find((one) => one.place === place)!
  const { id, content, key, attempts, deliveries, generation } = message
  return {
    ...{ place, id, content, key, attempts, deliveries, generation },
    isSuspect: isSuspect(before),
    timer: message.firedTimer,
    createdAt: hoursFrom(now, message.createdAt),
    dueAt: hoursFrom(now, message.dueAt),
    firstAttemptAt: hoursFrom(now, message.firstAttemptAt),
  }
}

/** When the next message of a queue is due, so that a worker knows when to look again. */
export function nextDueOf({ messages, now }: State, queue: Queue): number | null {
  const later = messages.flatMap(({ queue: own, dueAt, death }) =>
    own === queue && dueAt !== null && dueAt > now && death === null ? dueAt : [],
  )
  return later.length === 0 ? null : hoursFrom(now, Math.min(...later))
}

/** The first fresh message, so that a worker knows from where on to look again. */
function lowestOf({ messages }: State, { queue, after }: Wanted): number | null {
  const fresh = messages.filter((message) => message.queue === queue && message.dueAt === null)
  return fresh.find(({ place }) => place > after)?.place ?? null
}
