// Dead letters come back: the newest of an id, with a history of the lives that it had.
import { unused, waitingFor } from './publishing.ts'
import type { Reduced } from './reducer.ts'
import type { Cycle, DeadLetter, History, Message, State, Step } from './terms.ts'

type Replay = Step & { readonly kind: 'replay' }

type Dead = DeadLetter | (Message & { readonly death: NonNullable<Message['death']> })

/** A timer that waits under its name keeps it: then nothing is changed. */
export function replay(state: State, step: Replay): Reduced {
  const letter = newestOf(state, step.id)
  if (letter === undefined) return { state, answer: { kind: 'replayed', result: 'not_found' } }
  const timer = 'lease' in letter ? letter.firedTimer : letter.timer
  if (waitingFor(state, letter.queue, timer) !== undefined)
    return { state, answer: { kind: 'replayed', result: 'timer_conflict' } }
  const life = {
    ...unused,
    timer,
    generation: step.generation ?? letter.generation,
    history: historyAfter(letter, step),
  }
  const after =
    'lease' in letter ? free(state, { ...letter, ...life }, step) : append(state, letter, { life, step })
  return { state: after, answer: { kind: 'replayed', result: 'replayed' } }
}

function newestOf({ messages, dead }: State, id: number): Dead | undefined {
  const all = [...dead, ...messages.filter((message): message is Message & Dead => message.death !== null)]
  return all.filter((letter) => letter.id === id).sort((a, b) => b.death.at - a.death.at)[0]
}

/** A quarantined one is set free where it stands. Whoever looks for fresh messages is past it: so it is due. */
function free(state: State, freed: Message, { delayMs }: Replay): State {
  const messages = state.messages.map((message) =>
    message.place === freed.place ? { ...freed, dueAt: state.now + delayMs } : message,
  )
  return { ...state, messages }
}

/** A moved one goes to the end of all. */
function append(
  state: State,
  letter: DeadLetter,
  { life, step }: { readonly life: Life; readonly step: Replay },
): State {
  const { death: _, ...kept } = letter
  const dueAt = step.delayMs > 0 ? state.now + step.delayMs : null
  const message = { ...kept, ...life, place: state.nextPlace, dueAt }
  return {
    ...state,
    nextPlace: state.nextPlace + 1,
    messages: [...state.messages, message],
    dead: state.dead.filter((one) => one !== letter),
  }
}

type Life = typeof unused & Pick<Message, 'timer' | 'generation' | 'history'>

function historyAfter(letter: Dead, { by, generation, historyLimit }: Replay): History {
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
