import type { Executor } from '../adapters/executor.ts'
import { type CountedQueue, countMessages } from '../sql/count-messages.ts'
import type { Names } from '../sql/names.ts'
import { pauseFrom } from '../sql/pause-state.ts'
import { orSchemaMissing } from '../sql/schema-missing.ts'

/** A count that stops at ten thousand of a kind (fresh, due, later, parked): then there are at least as many. */
export interface BoundedCount {
  readonly count: number
  readonly atLeast: boolean
}

export interface QueueStats {
  /** Due now, and nobody has it. Messages of a newer `generation` than this outbox’s count, too: they are ready, for newer code. */
  readonly ready: BoundedCount
  /** Some process has it. */
  readonly leased: BoundedCount
  /** Due later: timers and retries. */
  readonly scheduled: BoundedCount
  /** Keys of an ordered queue that wait until somebody decides: see `outbox.keys`. Those behind the first message are `ready`, too, and nobody gets them. */
  readonly parked: BoundedCount
  /** How long the oldest ready message has been ready; null: none is. By the database's clock. */
  readonly oldestReadyMs: number | null
  /** Since when nothing of it is delivered, and who said so (null: the table does not say); null: it is not paused. */
  readonly paused: { readonly at: Date; readonly by: string | null } | null
}

/** Queue → what waits in it. */
export type Stats = Readonly<Record<string, QueueStats>>

const bound = 10_000

/** Asks the database, with one statement whose cost does not grow with the queues' lengths. */
export async function readStats(executor: Executor, names: Names, queues: readonly string[]): Promise<Stats> {
  if (queues.length === 0) return {}
  const rows = await executor.run(countMessages(names, queues, bound)).catch((error) => {
    throw orSchemaMissing(error, names.messages)
  })
  return Object.fromEntries(rows.map((row) => [row.queue, statsOf(row)]))
}

function statsOf(row: CountedQueue): QueueStats {
  const manyNow = row.manynow === 'true'
  const pause = pauseFrom(row.pause)
  return {
    ready: { count: Number(row.ready), atLeast: manyNow },
    leased: { count: Number(row.leased), atLeast: manyNow },
    scheduled: { count: Number(row.scheduled), atLeast: row.manylater === 'true' },
    parked: { count: Number(row.parked), atLeast: row.manyparked === 'true' },
    oldestReadyMs: row.oldest === null ? null : Math.max(0, Number(row.oldest)),
    paused: pause?.isPaused ? { at: pause.at, by: pause.by } : null,
  }
}
