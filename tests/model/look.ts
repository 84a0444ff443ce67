import {
  type Cycle,
  type DeadLetter,
  type History,
  hoursFrom,
  type Letter,
  type Message,
  type State,
} from './terms.ts'

/** Everything that a store holds, as two stores can agree on it: times in whole hours from now, and what is due in its order. */
export interface Look {
  readonly messages: readonly Message[]
  readonly dead: readonly DeadLetter[]
  /** Places of what waits for a time, the soonest first: hours alone would not tell. */
  readonly dueOrder: readonly number[]
}

export function lookAt({ now, messages, dead }: Pick<State, 'now' | 'messages' | 'dead'>): Look {
  const waiting = messages.filter(({ dueAt }) => dueAt !== null)
  return {
    messages: messages.map((message) => ({
      ...message,
      ...timesOf(now, message),
      dueAt: hoursFrom(now, message.dueAt),
      lease: message.lease && { ...message.lease, until: hoursFrom(now, message.lease.until) },
      death: message.death && { ...message.death, at: hoursFrom(now, message.death.at) },
    })),
    dead: [...dead]
      .sort((a, b) => a.place - b.place)
      .map((letter) => ({
        ...letter,
        ...timesOf(now, letter),
        death: { ...letter.death, at: hoursFrom(now, letter.death.at) },
      })),
    dueOrder: waiting
      .sort((a, b) => compare(a.dueAt, b.dueAt) || a.place - b.place)
      .map(({ place }) => place),
  }
}

function timesOf(now: number, { createdAt, firstAttemptAt, lastAttemptAt, history }: Letter) {
  return {
    createdAt: hoursFrom(now, createdAt),
    firstAttemptAt: hoursFrom(now, firstAttemptAt),
    lastAttemptAt: hoursFrom(now, lastAttemptAt),
    history: history && withoutTimes(history),
  }
}

/** The times of a history are written out, and no store lets them age: only whether there is one is told. */
function withoutTimes({ dropped, cycles }: History): History {
  const told = (time: number | null): number | null => (time === null ? null : 0)
  return {
    dropped,
    cycles: cycles.map(
      (cycle): Cycle => ({
        ...cycle,
        firstAttemptAt: told(cycle.firstAttemptAt),
        lastAttemptAt: told(cycle.lastAttemptAt),
        death: { ...cycle.death, at: 0 },
      }),
    ),
  }
}

/** Not by subtraction: never is as late as never. */
function compare(a: number | null, b: number | null): number {
  return a === b ? 0 : Number(a) < Number(b) ? -1 : 1
}
