// What operators see and decide of keys that wait.
import { historyLimit } from '../../packages/postbox/src/core/failure-history.ts'
import { lineOf, nextOf } from './ordering.ts'
import type { Reduced } from './reducer.ts'
import { type Dead, free } from './replaying.ts'
import {
  type Answer,
  type BlockedKey,
  hoursFrom,
  type Key,
  type Message,
  orderedQueue,
  type State,
  type Step,
} from './terms.ts'

type Decision = Step & { readonly kind: 'resumeKey' | 'skipKey' }

/** The parked message is tried again, in its place. */
export function resumeKey(state: State, { key, by }: Decision): Reduced {
  const head = parkedOf(state, key)
  if (head === undefined) return { state, answer: { kind: 'decided', id: null } }
  const after = free(state, head, { by, generation: null, historyLimit, delayMs: 0 })
  return { state: after, answer: { kind: 'decided', id: head.id } }
}

/** The key goes on without the parked message, which stays dead. The next one is told, and is due: whoever looks for fresh messages is past it. */
export function skipKey(state: State, { key }: Decision): Reduced {
  const head = parkedOf(state, key)
  if (head === undefined) return { state, answer: { kind: 'decided', id: null } }
  const next = nextOf(state, head)
  const messages = state.messages.map((message) => {
    if (message === head) return { ...head, isParked: false }
    return message === next ? { ...next, afterDead: head.id, dueAt: next.dueAt ?? state.now } : message
  })
  return { state: { ...state, messages }, answer: { kind: 'decided', id: head.id } }
}

function parkedOf(state: State, key: Key): (Message & Dead) | undefined {
  const [head] = lineOf(state, key)
  return head !== undefined && isParked(head) ? head : undefined
}

function isParked(message: Message): message is Message & Dead {
  return message.isParked
}

/** First those that are parked, by key; then those whose first message is put off, by the time of its next run. */
export function listKeys(state: State): Answer {
  const keys = new Set(
    state.messages.flatMap(({ queue, key }) => (queue === orderedQueue ? (key ?? []) : [])),
  )
  const heads = [...keys].sort().flatMap((key) => lineOf(state, key)[0] ?? [])
  const parked = heads.filter((head) => head.isParked)
  const retrying = heads
    .filter(({ dueAt, death }) => death === null && dueAt !== null && dueAt > state.now)
    .sort((a, b) => a.dueAt! - b.dueAt! || a.place - b.place)
  return { kind: 'keys', keys: [...parked, ...retrying].map((head) => blockedBy(state, head)) }
}

function blockedBy(state: State, head: Message): BlockedKey {
  const { key, place, id, attempts, death, lastError: error } = head
  const hours = (time: number | null): number | null => hoursFrom(state.now, time)
  return {
    key: key!,
    state: head.isParked ? 'parked' : 'retrying',
    head: {
      ...{ place, id, attempts, error },
      reason: death?.reason ?? null,
      since: hours(death?.at ?? head.firstAttemptAt),
      dueAt: head.isParked ? null : hours(head.dueAt),
    },
    waiting: lineOf(state, key!).length - 1,
  }
}
