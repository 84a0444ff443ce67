// Dead letters come back: the newest of an id, with a history of the lives that it had.
import { unused, waitingFor } from './publishing.ts'
import type { Reduced } from './reducer.ts'
import {
  type Cycle,
  type DeadLetter,
  type History,
  type Landing,
  type Message,
  orderedQueue,
  type State,
  type Step,
} from './terms.ts'

type Replay = Step & { readonly kind: 'replay' }

export type Dead = DeadLetter | (Message & { readonly death: NonNullable<Message['death']> })

/** A timer that waits under its name keeps it: then nothing is changed. But not where a key waits for it: then it goes on without its name. */
export function replay(state: State, step: Replay): Reduced {
  const letter = newestOf(state, step.id)
  if (letter === undefined) return { state, answer: { kind: 'replayed', result: 'not_found', lands: null } }
  const lands = landingOf(letter)
  if (lands !== 'in_place' && waitingFor(state, letter.queue, timerOf(letter)) !== undefined)
    return { state, answer: { kind: 'replayed', result: 'timer_conflict', lands } }
  const isMoved = !('lease' in letter)
  const after = isMoved || lands === 'behind_key' ? append(state, letter, step) : free(state, letter, step)
  return { state: after, answer: { kind: 'replayed', result: 'replayed', lands } }
}

/**
 * A parked message has held its place all the time. The old place of any other lies before messages of its key that may have been handled: it
 * goes behind all that are there, as if it were published now.
 */
function landingOf(letter: Dead): Landing {
  if ('lease' in letter && letter.isParked) return 'in_place'
  return letter.queue === orderedQueue && letter.key !== null ? 'behind_key' : 'anywhere'
}

function timerOf(letter: Dead): string | null {
  return 'lease' in letter ? letter.firedTimer : letter.timer
}

function newestOf({ messages, dead }: State, id: number): Dead | undefined {
  const all = [...dead, ...messages.filter((message): message is Message & Dead => message.death !== null)]
  return all.filter((letter) => letter.id === id).sort((a, b) => b.death.at - a.death.at)[0]
}

/** One that lies among the messages is set free where it stands. Whoever looks for fresh messages is past it: so it is due. */
export function free(state: State, letter: Message & Dead, step: Telling & Pick<Replay, 'delayMs'>): State {
  const timer = timerOf(letter)
  const isTaken = waitingFor(state, letter.queue, timer) !== undefined
  const freed = {
    ...letter,
    ...lifeAfter(letter, step),
    ...(isTaken ? { timer: null, firedTimer: timer } : { timer }),
    dueAt: state.now + step.delayMs,
  }
  const messages = state.messages.map((message) => (message === letter ? freed : message))
  return { ...state, messages }
}

/** All others go to the end of all. What is due later, and what is a timer, takes its place in its key then. */
function append(state: State, letter: Dead, step: Replay): State {
  const { id, content, queue, key, createdAt } = letter
  const timer = timerOf(letter)
  const isBehindKey = landingOf(letter) === 'behind_key'
  const dueAt = step.delayMs > 0 || (isBehindKey && timer !== null) ? state.now + step.delayMs : null
  const message: Message = {
    ...{ id, content, queue, key, createdAt, timer, dueAt },
    ...lifeAfter(letter, step),
    place: state.nextPlace,
    isToJoin: isBehindKey && dueAt !== null,
    afterDead: null,
  }
  return {
    ...state,
    nextPlace: state.nextPlace + 1,
    messages: [...state.messages.filter((one) => one !== letter), message],
    dead: state.dead.filter((one) => one !== letter),
  }
}

/** What a replay says of itself. */
type Telling = Pick<Replay, 'by' | 'generation' | 'historyLimit'>

function lifeAfter(letter: Dead, step: Telling) {
  const generation = step.generation ?? letter.generation
  return { ...unused, generation, history: historyAfter(letter, step) }
}

function historyAfter(letter: Dead, { by, generation, historyLimit }: Telling): History {
  const { attempts, deliveries, firstAttemptAt, lastAttemptAt, lastError, death } = letter
  const cycle: Cycle = {
    ...{ attempts, deliveries, firstAttemptAt, lastAttemptAt, lastError, death },
    generation: letter.generation,
    replayedBy: by,
    generationAfter: generation ?? letter.generation,
  }
  const { dropped, cycles } = letter.history ?? { dropped: 0, cycles: [] }
  const all = [...cycles, cycle]
  return { dropped: dropped + Math.max(0, all.length - historyLimit), cycles: all.slice(-historyLimit) }
}
