// Path 3/7 · wake: a notification, a time that has come, or an elapsed pace → "look now".
import type { Names } from '../sql/names.ts'
import { checkClear, type LaidDown, lieDown, getUp as unlock } from '../sql/sleep.ts'
import type { Listener } from './listener.ts'

/**
 * Before the engine sleeps it makes sure that it will be woken: it lies down on its queues, so that publishers notify from now on,
 * waits for those that saw nobody asleep, and owes itself one sweep for what they committed. It stays down while little comes in: a
 * message then costs two claims, of which the first is small (docs/decisions/0045), a delete and nothing else. It gets up when claims
 * come back full: publishers need not notify a process that looks anyway.
 */
export interface Waker {
  /** True: whatever is committed from now on is announced. False: some of it may not be, so look again soon. */
  lieDown(queues: readonly string[]): Promise<boolean>
  /** Notifications are heard: what is not safe yet will be soon, when publishers that saw nobody asleep have ended. */
  readonly isListening: boolean
  /** These queues are busy: publishers may be quiet about them. */
  getUp(queues: readonly string[]): void
  /** Gets up for good: where others use the same connection, its locks would outlive us. */
  close(): void
}

export interface WakerParts {
  /** null: nobody listens, ever. */
  readonly listener: Pick<Listener, 'ear' | 'run'> | null
  readonly names: Names
  /** Publishers notify only when somebody sleeps; else they always do. */
  readonly isQuiet: boolean
  /** Something may have been committed without a word: look at everything before sleeping. */
  oweSweep(): void
}

export function createWaker({ listener, names, isQuiet, oweSweep }: WakerParts): Waker {
  // Queue → whether the publishers that stayed quiet about it have ended. Belongs to one connection: its locks go with it.
  let down = new Map<string, boolean>()
  let ear: number | null = null

  const note = ({ queue, clear }: LaidDown): void => {
    if (clear !== 'true' || !down.has(queue)) return
    down.set(queue, true)
    oweSweep()
  }
  const settleDown = async (
    listener: Pick<Listener, 'ear' | 'run'>,
    queues: readonly string[],
  ): Promise<boolean> => {
    if (listener.ear !== ear) {
      down = new Map()
      ear = listener.ear
      oweSweep()
    }
    if (!isQuiet) return true
    const fresh = queues.filter((queue) => !down.has(queue))
    const unclear = queues.filter((queue) => down.get(queue) === false)
    // Counted from now on: whoever closes us while the statement is under way must let go of these, too.
    for (const queue of fresh) down.set(queue, false)
    if (fresh.length > 0) (await layDown(listener, fresh)).forEach(note)
    if (unclear.length > 0) (await listener.run(checkClear(names, unclear))).forEach(note)
    return queues.every((queue) => down.get(queue) === true) && listener.ear === ear
  }
  const layDown = async (
    listener: Pick<Listener, 'run'>,
    queues: readonly string[],
  ): Promise<readonly LaidDown[]> => {
    try {
      return await listener.run(lieDown(names, queues))
    } catch (error) {
      for (const queue of queues) down.delete(queue)
      throw error
    }
  }
  const getUp = (queues: readonly string[]): void => {
    const up = queues.filter((queue) => down.delete(queue))
    if (up.length === 0 || listener === null || listener.ear !== ear) return
    // When it fails the connection is lost, and its locks with it.
    listener.run(unlock(names, up)).catch(() => {})
  }
  return {
    async lieDown(queues) {
      if (listener === null || listener.ear === null) return false
      // A failure is the listener's to report and to mend. Until then we poll.
      return settleDown(listener, queues).catch(() => false)
    },
    get isListening() {
      return listener !== null && listener.ear !== null
    },
    getUp,
    close: () => getUp([...down.keys()]),
  }
}
