// What an outbox promises, as a pure function: a state and a step give the next state and what the caller is told. Nothing here knows of
// a database: the stores are held to it (drive.ts). Publishing is in publishing.ts, the ends of deliveries in settling.ts.
import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import { cancel, publish } from './publishing.ts'
import { replay } from './replaying.ts'
import { settle } from './settling.ts'
import {
  type Answer,
  type Delivered,
  type Found,
  hoursFrom,
  type Message,
  type State,
  type Step,
  type Wanted,
} from './terms.ts'

export interface Reduced {
  readonly state: State
  readonly answer: Answer
}

export const empty: State = { now: 0, nextPlace: 1, messages: [], dead: [], given: [] }

export function reduce(before: State, step: Step): Reduced {
  // No two steps happen at the same time: what came first is due first.
  const state = { ...before, now: before.now + 1 }
  switch (step.kind) {
    case 'publish':
      return publish(state, step)
    case 'claim':
      return claim(state, step)
    case 'settle':
      return settle(state, step)
    case 'cancel':
      return cancel(state, step)
    case 'replay':
      return replay(state, step)
    case 'pass':
      return { state: { ...state, now: state.now + step.ms }, answer: { kind: 'nothing' } }
    case 'crash':
      return { state: crash(state, step.worker), answer: { kind: 'nothing' } }
    default:
      return unreachable(step)
  }
}

/** A worker is gone, and tells nobody: its leases end by themselves. */
function crash(state: State, worker: number): State {
  const given = state.given.map((lease) => (lease.worker === worker ? { ...lease, isInHand: false } : lease))
  return { ...state, given }
}

/**
 * A claim leases up to `room` messages of each queue that is asked for. What was promised for a time goes before what is fresh, each in its
 * order; what somebody holds is left to him until his lease ends. Nobody but the claim may settle them until somebody else has claimed them.
 * For code of a generation, messages of newer ones are not there.
 */
function claim(state: State, step: Step & { readonly kind: 'claim' }): Reduced {
  const { claim, worker, wanted, generation } = step
  const visible = { ...state, messages: state.messages.filter((message) => isOurs(message, generation)) }
  const taken = new Map(
    wanted.flatMap((one) => takeable(visible, one).map(({ place }) => [place, one] as const)),
  )
  const messages = state.messages.map((message) => {
    const from = taken.get(message.place)
    return from === undefined ? message : delivered(message, { claim, until: state.now + from.leaseMs })
  })
  const given = [...taken.keys()].map((place) => ({ place, claim, worker, isInHand: true }))
  const after = { ...state, messages, given: [...state.given, ...given] }
  const found = wanted.map((one): Found => {
    const own = takeable(visible, one).map(({ place }) => toldOf(after, place))
    return { queue: one.queue, messages: own, ...seenBy(visible, one) }
  })
  return { state: after, answer: { kind: 'claimed', found } }
}

function isOurs(message: Message, generation: number | null): boolean {
  return generation === null || (message.generation ?? generation) <= generation
}

/** What a claim may have of a queue, in the order in which it is handed out. */
function takeable({ messages, now }: State, { queue, room, after, dueFrom }: Wanted): readonly Message[] {
  const free = messages.filter(
    (message) => message.queue === queue && (message.lease === null || message.lease.until < now),
  )
  const due = free
    .filter(({ dueAt }) => dueAt !== null && dueAt <= now && dueAt >= (dueFrom ?? Number.NEGATIVE_INFINITY))
    .sort((a, b) => Number(a.dueAt) - Number(b.dueAt) || a.place - b.place)
  const fresh = free.filter(({ dueAt, place }) => dueAt === null && place > after)
  return [...due, ...fresh].slice(0, room)
}

/** Counted by the claim itself: a message that kills its process must use a delivery up. A timer gives its name up to whoever wants it. */
function delivered(message: Message, lease: Message['lease']): Message {
  return {
    ...message,
    lease,
    deliveries: message.deliveries + 1,
    timer: null,
    firedTimer: message.timer ?? message.firedTimer,
  }
}

function toldOf({ messages, now }: State, place: number): Delivered {
  const message = messages.find((one) => one.place === place)!
  const { id, content, key, attempts, deliveries, generation } = message
  return {
    ...{ place, id, content, key, attempts, deliveries, generation },
    timer: message.firedTimer,
    createdAt: hoursFrom(now, message.createdAt),
    dueAt: hoursFrom(now, message.dueAt),
    firstAttemptAt: hoursFrom(now, message.firstAttemptAt),
  }
}

/** What else a claim tells of a queue, so that its worker knows when, and from where on, to look again. */
function seenBy(
  { messages, now }: State,
  { queue, after, sweep }: Wanted,
): Pick<Found, 'nextDue' | 'lowest'> {
  const own = messages.filter((message) => message.queue === queue)
  const later = own.flatMap(({ dueAt, death }) =>
    dueAt !== null && dueAt > now && death === null ? dueAt : [],
  )
  const lowest = own.find(({ dueAt, place }) => dueAt === null && place > after)?.place
  return {
    nextDue: later.length === 0 ? null : hoursFrom(now, Math.min(...later)),
    lowest: (sweep ? lowest : null) ?? null,
  }
}
