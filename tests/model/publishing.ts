// Publishing, and whose the name of a timer is: the waiting message's.
import type { Reduced } from './reducer.ts'
import {
  type Draft,
  type Message,
  orderedQueue,
  type Queue,
  type Receipt,
  type State,
  type Step,
} from './terms.ts'

/** All or nothing, with the transaction of whoever publishes. */
export function publish(state: State, { drafts, ending }: Step & { readonly kind: 'publish' }): Reduced {
  let after = state
  const receipts = drafts.map((draft): Receipt | null => {
    const { state, place } = put(after, draft)
    after = state
    return place === null ? null : { id: draft.id, place: ending === 'rollback' ? null : place }
  })
  return { state: ending === 'rollback' ? state : after, answer: { kind: 'published', receipts } }
}

/** Only a timer that waits can be cancelled: a running handler is never undercut. */
export function cancel(state: State, { queue, timer, ending }: Step & { readonly kind: 'cancel' }): Reduced {
  const waiting = waitingFor(state, queue, timer)
  const messages = state.messages.filter((message) => message !== waiting)
  return {
    state: ending === 'rollback' ? state : { ...state, messages },
    answer: { kind: 'cancelled', isCancelled: waiting !== undefined },
  }
}

/** At most one message of a queue waits under a name. */
export function waitingFor({ messages }: State, queue: Queue, timer: string | null): Message | undefined {
  return timer === null
    ? undefined
    : messages.find((message) => message.queue === queue && message.timer === timer)
}

/**
 * Puts a message at the end of all, unless a timer of its name waits: that is kept, or becomes the new message where it stands. In the ordered
 * queue it takes its place in its key when it is due; so does one that may replace another, whose place lies before messages that may be under way.
 */
export function put(state: State, draft: Draft): { readonly state: State; readonly place: number | null } {
  const waiting = waitingFor(state, draft.queue, draft.timer)
  const isOrdered = draft.queue === orderedQueue
  const isReplacing = draft.timer !== null && draft.conflict === 'replace'
  const dueAt = dueOf(state.now, draft) ?? (isOrdered && isReplacing ? state.now : null)
  const isToJoin = isOrdered && draft.key !== null && dueAt !== null
  if (waiting === undefined) {
    const place = state.nextPlace
    const message = messageOf(state.now, draft, { place, dueAt, isToJoin })
    return { place, state: { ...state, nextPlace: place + 1, messages: [...state.messages, message] } }
  }
  if (draft.conflict === 'keep') return { place: null, state }
  // Not fresh: whoever looks for fresh messages is past its place by now.
  const spot = { place: waiting.place, dueAt: dueAt ?? state.now, isToJoin }
  const replaced = messageOf(state.now, draft, spot)
  const messages = state.messages.map((message) => (message === waiting ? replaced : message))
  return { place: waiting.place, state: { ...state, messages } }
}

/** null: at once. A time that has passed is as good as now. */
function dueOf(now: number, { due }: Draft): number | null {
  if (due.kind === 'after') return now + due.delayMs
  return due.kind === 'at' && due.time > now ? due.time : null
}

function messageOf(now: number, draft: Draft, spot: Pick<Message, 'place' | 'dueAt' | 'isToJoin'>): Message {
  const { id, content, queue, key, timer, generation } = draft
  return {
    ...{ id, content, queue, key, timer, generation, ...spot },
    ...unused,
    createdAt: now,
    afterDead: null,
    history: null,
  }
}

/** A message that was never claimed. */
export const unused = {
  firedTimer: null,
  lease: null,
  death: null,
  isParked: false,
  deliveries: 0,
  attempts: 0,
  firstAttemptAt: null,
  lastAttemptAt: null,
  lastError: null,
} as const
