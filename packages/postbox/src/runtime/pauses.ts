import type { Teller } from '../core/events.ts'
import type { Names } from '../sql/names.ts'
import type { Pause } from '../sql/pause-state.ts'
import type { Board } from './board.ts'
import type { Clock } from './clock.ts'
import { orderMismatch } from './register-orders.ts'

/** What a statement said of a queue. */
export interface ToldPause {
  readonly queue: string
  /** null: nobody has ever paused it. */
  readonly pause: Pause | null
}

/** Which queues are paused, as far as this process knows. Claims tell it; where none is sent, it asks. */
export interface Pauses {
  /** What a statement that was sent at that time says. In the order in which they were sent. */
  learn(told: readonly ToldPause[], sentAt: number): void
  /** Somebody has paused or resumed a queue: time to ask. */
  changed(): void
  /** When to ask; never, while nothing is paused and nothing that was claimed waits to be started. */
  nextLookAt(): number
  look(): Promise<void>
  /** Those that are in the order of their keys, and that this process has without: nothing of them is claimed. */
  mismatched(): readonly string[]
}

export interface PausesParts {
  readonly clock: Pick<Clock, 'now'>
  readonly teller: Teller
  readonly names: Pick<Names, 'queues'>
  readonly board: Pick<Board, 'queues' | 'watched' | 'pause' | 'resume'>
  ask(queues: readonly string[]): Promise<readonly ToldPause[]>
  paused(queue: string): void
  resumed(queue: string): void
}

// A pause and its end are seen within a second, whatever becomes of notifications: the rest of it is for the statement.
const everyMs = 900

interface Known {
  readonly pause: Pause | null
  readonly sentAt: number
}

export function createPauses(parts: PausesParts): Pauses {
  const { clock, teller, board } = parts
  const known = new Map<string, Known>()
  let hasChanged = false

  const tellMismatch = (queue: string): void => {
    const message =
      'nothing of a queue is claimed: it is in the order of its keys, and this outbox has it without'
    const error = orderMismatch(parts.names, queue)
    teller.tell({ kind: 'warning', code: 'order_mismatch', message, fields: { queue }, error })
  }
  const learnOne = ({ queue, pause }: ToldPause): void => {
    const before = known.get(queue)?.pause ?? null
    if (isSame(before, pause)) return
    if (pause?.isPaused) {
      board.pause(queue)
      parts.paused(queue)
      if (pause.isMismatch) tellMismatch(queue)
      else teller.tell({ kind: 'queue_paused', queue, by: pause.by, at: pause.at })
    } else if (before?.isPaused) {
      board.resume(queue)
      parts.resumed(queue)
      if (!before.isMismatch)
        teller.tell({ kind: 'queue_resumed', queue, by: pause?.by ?? null, at: pause?.at ?? null })
    }
  }
  const learn = (told: readonly ToldPause[], sentAt: number): void => {
    for (const one of told) {
      learnOne(one)
      known.set(one.queue, { pause: one.pause, sentAt })
    }
  }
  return {
    learn,
    changed() {
      hasChanged = true
    },
    nextLookAt() {
      if (hasChanged) return clock.now()
      const due = board.watched().map((queue) => (known.get(queue)?.sentAt ?? clock.now()) + everyMs)
      return Math.min(Number.POSITIVE_INFINITY, ...due)
    },
    async look() {
      // Whoever changes something while it is under way is asked for by the next one.
      hasChanged = false
      const sentAt = clock.now()
      const queues = board.queues()
      if (queues.length > 0) learn(await parts.ask(queues), sentAt)
    },
    mismatched: () => [...known].flatMap(([queue, { pause }]) => (pause?.isMismatch ? [queue] : [])),
  }
}

function isSame(a: Pause | null, b: Pause | null): boolean {
  return a?.isPaused === b?.isPaused && a?.by === b?.by && a?.at.getTime() === b?.at.getTime()
}
