import type { Executor, Hearing, Listening } from '../../adapters/executor.ts'
import type { checkClear, getUp, lieDown, sendWord } from '../../sql/sleep.ts'
import type { Operation } from './operation.ts'
import type { Transaction } from './transaction.ts'

/** Who listens. */
export interface Hearings {
  listen(channels: readonly string[], hearing: Hearing, executor: Executor): Listening
  /** What a transaction that has committed had to say, after whoever commits has gone on. */
  tell(tx: Pick<Transaction, 'toldQueues' | 'toldChannels'>): void
}

interface Listener {
  readonly channels: readonly string[]
  readonly hearing: Hearing
}

// Taken before a test can put false timers in its place.
const { queueMicrotask } = globalThis

export function createHearings(): Hearings {
  const listeners = new Set<Listener>()
  return {
    listen(channels, hearing, { run }) {
      const listener = { channels, hearing }
      listeners.add(listener)
      const destroy = (): void => void listeners.delete(listener)
      return { run, destroy, end: async () => destroy() }
    },
    tell({ toldQueues, toldChannels }) {
      if (toldQueues.size + toldChannels.size === 0) return
      for (const listener of listeners) {
        queueMicrotask(() => {
          if (listeners.has(listener)) tellOne(listener, toldQueues, toldChannels)
        })
      }
    },
  }
}

/** The first channel is the outbox's: statements do not say which outbox they are of, and there is one here. */
function tellOne(
  { channels, hearing }: Listener,
  queues: ReadonlySet<string>,
  words: ReadonlySet<string>,
): void {
  const [own] = channels
  for (const queue of queues) if (own !== undefined) hearing.notified(own, queue)
  for (const channel of words) if (channels.includes(channel)) hearing.notified(channel, '')
}

export const word: Operation<typeof sendWord> = ({ tx }, channel) => {
  tx.toldChannels.add(channel)
  return [{ sent: 'sent' }]
}

/** Publishers tell of everything here, whoever sleeps: there is nobody to wait for. */
export const clear: Operation<typeof lieDown> & Operation<typeof checkClear> = (_, queues) =>
  queues.map((queue) => ({ queue, clear: 'true' }))

export const rise: Operation<typeof getUp> = (_, queues) => queues.map((queue) => ({ queue }))
