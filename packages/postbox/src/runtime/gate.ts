import type { Clock } from './clock.ts'
import { createSleeper } from './sleeper.ts'

/**
 * Shared by all dispatchers of a process, so that a suspect is run alone: when the process dies, it is known who killed it. A suspect is
 * not begun before the last one is over and written: nobody is blamed for what comes after him.
 */
export interface Gate {
  /** Whether a handler may start now. If not, `again` is called when one may. */
  mayStart(again: () => void): boolean
  /** A handler starts. */
  started(): void
  ended(): void
  /** Asks for turns, one at a time, for as long as `next` has somebody. */
  isolate(next: NextSuspect): void
}

/** Starts the next suspect; null: there is none, or no slot for one. */
export type NextSuspect = () => Suspected | null

export interface Suspected {
  /** Resolves when what became of it is written. Never rejects. */
  readonly over: Promise<void>
  /** More than one of its deliveries has ended without an outcome. */
  readonly isRepeated: boolean
}

/** So long those that run are waited for, a suspect is alone, and turns follow each other while the gate is closed: a slow handler stops nobody. */
const patienceMs = 1_000
// After the first death all that were in hand are suspects, and should be back at work soon. After the second, whoever is not slower than this
// is not interrupted again. Without a bound, handlers of an hour would be run one by one for days.
const repeatedPatienceMs = 10_000

/** The halt opens it for good. */
export function createGate(clock: Clock, halt: AbortSignal): Gate {
  const sleeper = createSleeper(clock)
  const asking = new Set<NextSuspect>()
  const waiting = new Set<() => void>()
  let isOpen = true
  let isServing = false
  let running = 0
  let starts = 0

  const until = async (isOver: () => boolean, ms: number): Promise<void> => {
    const end = clock.now() + ms
    while (!isOver() && !halt.aborted && clock.now() < end) await sleeper.sleepUntil(end)
  }
  const serve = async (): Promise<void> => {
    isServing = true
    // Only now: a test kit makes a gate for each delivery, and all would listen for ever.
    halt.addEventListener('abort', sleeper.wake)
    while (asking.size > 0 && !halt.aborted) await isolateSome()
    halt.removeEventListener('abort', sleeper.wake)
    isServing = false
  }
  const isolateSome = async (): Promise<void> => {
    const closedAt = clock.now()
    isOpen = false
    await until(() => running === 0, patienceMs)
    const last = await takeTurns()
    const openedAt = clock.now()
    const before = starts
    open()
    await until(() => last.isOver, last.isRepeated ? repeatedPatienceMs : 0)
    // Others want to work, too: the gate is closed for half of the time at most.
    if (starts > before) await until(() => false, 2 * openedAt - closedAt - clock.now())
  }
  const takeTurns = async (): Promise<Turn> => {
    const end = clock.now() + patienceMs
    for (;;) {
      const turn = nextTurn()
      await until(() => turn.isOver, patienceMs)
      if (turn === none || !turn.isOver || clock.now() >= end) return turn
    }
  }
  const nextTurn = (): Turn => {
    for (const next of halt.aborted ? [] : asking) {
      asking.delete(next)
      const suspected = next()
      if (suspected === null) continue
      // Behind the others.
      asking.add(next)
      return turnOf(suspected, sleeper.wake)
    }
    return none
  }
  const open = (): void => {
    isOpen = true
    const all = [...waiting]
    waiting.clear()
    for (const again of all) again()
  }
  return {
    mayStart(again) {
      if (!isOpen) waiting.add(again)
      return isOpen
    },
    started() {
      running++
      starts++
    },
    ended() {
      running--
      if (running === 0) sleeper.wake()
    },
    isolate(next) {
      asking.add(next)
      if (!isServing) void serve()
    },
  }
}

/** A suspect at work. */
interface Turn {
  readonly isOver: boolean
  readonly isRepeated: boolean
}

const none: Turn = { isOver: true, isRepeated: false }

function turnOf({ over, isRepeated }: Suspected, ended: () => void): Turn {
  const turn = { isOver: false, isRepeated }
  void over.then(() => {
    turn.isOver = true
    ended()
  })
  return turn
}
