import { constant, type Outbox, type OutboxEvent, type OutboxOptions } from 'postbox'
import { onTestFinished } from 'vitest'
import { collector, eventually } from '../support/signals.ts'
import { minute, type StoreBench } from './store-bench.ts'

export const hour = 60 * minute
const often = { min: 5, max: 20 }

export interface OutboxBench {
  /** An outbox that looks often and tries again after an hour; stopped when the test is over. */
  open(options?: OutboxOptions): Opened
  /** Commits what the work published. */
  inTransaction<T>(work: (handle: never) => Promise<T>): Promise<T>
}

interface Opened {
  readonly outbox: Outbox
  /** So many events of the kind have been told. */
  of(kind: OutboxEvent['kind'], count?: number): Promise<unknown>
  kinds(): readonly string[]
}

export function outboxBench(bench: StoreBench): OutboxBench {
  return {
    open(options = {}) {
      const events = collector<OutboxEvent>('events')
      const defaults = { pollMs: often, retry: constant({ delayMs: hour }) }
      const outbox = bench.store.outbox({ logger: false, onEvent: events.add, defaults, ...options })
      onTestFinished(() => outbox.stop())
      const of: Opened['of'] = (kind, count = 1) => {
        const seen = (): number => events.all.filter((event) => event.kind === kind).length
        return eventually(() => seen() >= count, { what: `${count} ${kind}` })
      }
      return { outbox, of, kinds: () => events.all.map(({ kind }) => kind) }
    },
    async inTransaction(work) {
      const tx = await bench.store.begin()
      const result = await work(tx.handle as never)
      await tx.commit()
      return result
    },
  }
}
