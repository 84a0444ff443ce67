// The order of keys. In the ordered queue the messages of a key stand in line, in the order in which they were published, and are handled one
// after the other: who holds the first one holds the key. Messages without a key wait for nobody.
import { isFree, isOurs, isPaused, leased, nextDueOf, toldOf } from './claiming.ts'
import type { Reduced } from './reducer.ts'
import {
  type Choice,
  type Key,
  type Message,
  orderedQueue,
  type State,
  type Step,
  type WantedInOrder,
} from './terms.ts'

type ClaimInOrder = Step & { readonly kind: 'claimInOrder' }

/** Those of a key, the first one first. The dead are out of the line, but for a parked one: being the first, it keeps all others waiting. */
export function lineOf({ messages }: State, key: Key): readonly Message[] {
  return messages.filter(
    (message) =>
      message.queue === orderedQueue &&
      message.key === key &&
      !message.isToJoin &&
      (message.death === null || message.isParked),
  )
}

export function isFirst(state: State, message: Message): boolean {
  return message.key === null || lineOf(state, message.key)[0] === message
}

/**
 * A claim takes first messages, and of their keys those right behind them, without a gap: whoever has the one has nobody beside him who could have the
 * other. Which of them it takes when there is not room for all, and how many behind, is the store's to choose: here it is said which it may not.
 */
export function claimInOrder(state: State, step: ClaimInOrder): Reduced {
  const { claim, worker, wanted, generation, choice } = step
  const because = wrongChoice(state, step)
  if (because !== undefined) return { state, answer: { kind: 'wrong', because } }
  if (isPaused(state, orderedQueue)) {
    const found = { messages: [], nextDue: null, isPaused: true }
    return { state, answer: { kind: 'claimedInOrder', found, choice } }
  }
  const lease = { claim, until: state.now + wanted.leaseMs }
  const after = leased(state, new Map(choice.places.map((place) => [place, lease])), worker)
  const messages = messagesAt(state, choice.places).map((message) => ({
    ...toldOf(after, message),
    afterDead: message.afterDead,
  }))
  const visible = { ...state, messages: state.messages.filter((message) => isOurs(message, generation)) }
  const found = { messages, nextDue: nextDueOf(visible, orderedQueue), isPaused: false }
  return { state: after, answer: { kind: 'claimedInOrder', found, choice } }
}

/** Why a claim may not have chosen so; undefined: it may. */
function wrongChoice(state: State, step: ClaimInOrder): string | undefined {
  const { wanted, choice } = step
  const taken = messagesAt(state, choice.places)
  if (isPaused(state, orderedQueue)) return taken.length > 0 ? 'it took of a paused queue' : undefined
  if (taken.length > wanted.room) return 'it took more than it has room for'
  return outOfOrder(state, step, taken) ?? leftBehind(state, step, taken)
}

/** What must never be taken: what is not there to be had, and what others of its key come before. */
function outOfOrder(state: State, step: ClaimInOrder, taken: readonly Message[]): string | undefined {
  const wrong = taken.find((message) => !canBeHad(state, step, message))
  if (wrong !== undefined) return `it took ${wrong.place}, which cannot be had`
  const keys = new Set(taken.flatMap(({ key }) => key ?? []))
  const jumped = [...keys].find((key) => {
    const own = taken.filter((message) => message.key === key)
    return lineOf(state, key).some((message, nth) => nth < own.length && message !== own[nth])
  })
  return jumped === undefined
    ? undefined
    : `it did not take ${jumped} from its first message on, without a gap`
}

/** Nobody has it, it lives, its time has come, it has its place in its key, and it is not too new: then it waits for newer code, and its key with it. */
function canBeHad(state: State, { generation }: ClaimInOrder, message: Message): boolean {
  return (
    message.queue === orderedQueue &&
    isFree(state, message) &&
    message.death === null &&
    !message.isToJoin &&
    (message.dueAt ?? 0) <= state.now &&
    isOurs(message, generation)
  )
}

/** What must be taken, or told: nothing that could be had may be forgotten by everybody. */
function leftBehind(state: State, step: ClaimInOrder, taken: readonly Message[]): string | undefined {
  const { wanted, choice } = step
  const firsts = state.messages.filter((message) => canBeHad(state, step, message) && isFirst(state, message))
  const left = firsts.filter((message) => !taken.includes(message))
  const isFull = firsts.length - left.length === wanted.room
  const missed = left.find((message) => isLookedFor(step, message) && !isFull)
  if (missed !== undefined) return `it left ${missed.place}, the first of its key, and had room for it`
  const late = left.find(
    (message) => isDueFrom(message, wanted.dueFrom) && !taken.every(isSoonerThan(message)),
  )
  if (late !== undefined) return `it left ${late.place}, which was due before others that it took`
  const forgotten = left.find((message) => isForgotten(step, message))
  if (forgotten !== undefined) return `it left ${forgotten.place}, and leaves nobody a way to it`
  return wrongAboutJoining(state, choice, wanted.dueFrom)
}

/** It lies where nobody looks again, or comes next of a key that nobody asks for again. */
function isForgotten({ wanted, choice }: ClaimInOrder, { key, dueAt, place }: Message): boolean {
  if (key !== null && choice.leftKeys.includes(key)) return false
  const isPassed = dueAt === null && place > wanted.after && place <= (choice.passed ?? 0)
  return isPassed || isEnded(wanted, key)
}

/** The ways by which a claim finds what is first: it need not find what it was not sent for. */
function isLookedFor({ wanted }: ClaimInOrder, message: Message): boolean {
  const { key, dueAt, place } = message
  const { after, dueFrom, keysFrom } = wanted
  if (isDueFrom(message, dueFrom) || (dueAt === null && place > after)) return true
  return key !== null && ((keysFrom !== null && key > keysFrom) || isEnded(wanted, key))
}

function isEnded({ ends }: WantedInOrder, key: Key | null): boolean {
  return ends.some((end) => end.key === key)
}

function isDueFrom({ dueAt }: Message, dueFrom: number | null): boolean {
  return dueAt !== null && dueAt >= (dueFrom ?? Number.NEGATIVE_INFINITY)
}

function isSoonerThan(left: Message): (message: Message) => boolean {
  return ({ dueAt, place }) =>
    dueAt !== null && (dueAt < left.dueAt! || (dueAt === left.dueAt && place < left.place))
}

/** Whoever claims learns that somebody has to take his place, and lets him. */
function wrongAboutJoining(state: State, { isJoinDue }: Choice, dueFrom: number | null): string | undefined {
  const due = joining(state)
  if (isJoinDue) return due.length === 0 ? 'it says that some are to join their keys' : undefined
  const isKept = due.some((message) => isDueFrom(message, dueFrom))
  return isKept ? 'it does not say that some are to join their keys' : undefined
}

/** What is due takes its place in its key as if it were published now, the earliest first: until then it neither waited nor was waited for. */
export function join(state: State): Reduced {
  const due = joining(state)
  const joined = due.map(
    (message, nth): Message => ({
      ...message,
      place: state.nextPlace + nth,
      dueAt: null,
      isToJoin: false,
    }),
  )
  const messages = [...state.messages.filter((message) => !due.includes(message)), ...joined]
  const nextPlace = state.nextPlace + joined.length
  return { state: { ...state, messages, nextPlace }, answer: { kind: 'joined', count: joined.length } }
}

function joining({ messages, now }: State): readonly Message[] {
  return messages
    .filter(({ isToJoin, dueAt }) => isToJoin && dueAt! <= now)
    .sort((a, b) => a.dueAt! - b.dueAt! || a.place - b.place)
}

/** A worker is done with the first message of a key: it may look for the next right behind it. */
export function ended(state: State, { queue, key, place }: Message): State {
  if (queue !== orderedQueue || key === null) return state
  return { ...state, ends: new Map(state.ends).set(key, place) }
}

/** The first message of a key has died, and the key goes on: the one that waits right behind it is told who died, and none that comes later. */
export function skipped(state: State, dead: Message): State {
  const next = nextOf(state, dead)
  const messages = state.messages.map((one) => (one === next ? { ...one, afterDead: dead.id } : one))
  return { ...state, messages }
}

export function nextOf(state: State, { queue, key, place }: Message): Message | undefined {
  if (queue !== orderedQueue || key === null) return undefined
  return lineOf(state, key).find((message) => message.place > place)
}

function messagesAt({ messages }: State, places: readonly number[]): readonly Message[] {
  return messages.filter(({ place }) => places.includes(place))
}
