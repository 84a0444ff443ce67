import type { Database } from './adapters/executor.ts'
import { OutboxError } from './core/errors.ts'
import { type PauseOptions, resolvePause } from './core/pause-options.ts'
import { assertQueue } from './core/queue-name.ts'
import { readCommitted } from './runtime/read-committed.ts'
import type { Names } from './sql/names.ts'
import { type PauseInput, pauseQueue, resumeQueue } from './sql/pause-queue.ts'
import { type Pause, pauseFrom } from './sql/pause-state.ts'
import { readPauses } from './sql/read-pauses.ts'
import { orSchemaMissing } from './sql/schema-missing.ts'
import { heardWake } from './sql/wake.ts'
import type { Publishing } from './write.ts'

export type PauseResult =
  | { readonly paused: true }
  | {
      readonly paused: false
      /** Whoever was first stays recorded. */
      readonly because: 'already_paused'
      /** Who paused it; null: the table does not say. */
      readonly by: string | null
      readonly at: Date
    }

export type ResumeResult =
  | { readonly resumed: true }
  | {
      readonly resumed: false
      readonly because: 'not_paused'
      /** Who resumed it last, and when; null: nobody has, or the table does not say. */
      readonly by: string | null
      readonly at: Date | null
    }

/** Whether queues are delivered at all. Every call is a transaction of its own, and binds every claim that begins after it. */
export interface Pausing {
  pause(queue: string, options: PauseOptions): Promise<PauseResult>
  resume(queue: string, options: PauseOptions): Promise<ResumeResult>
}

export interface PausingParts {
  readonly database: () => Database
  readonly outbox: Pick<Publishing, 'names' | 'wake' | 'queues'>
}

export function createPausing({ database: databaseOf, outbox }: PausingParts): Pausing {
  const { names, wake, queues } = outbox
  const change = async (statement: typeof pauseQueue, input: Omit<PauseInput, 'wake'>): Promise<Change> => {
    const database = databaseOf()
    const told = { ...input, wake: heardWake(wake, database) }
    return readCommitted(database, async (tx) => {
      const [row] = await tx.run(statement(names, told))
      return row === undefined ? { isDone: false, pause: await pauseOf(tx, names, input.queue) } : done
    }).catch((error) => {
      throw orSchemaMissing(error, names.queues)
    })
  }
  return {
    async pause(queue, options) {
      assertQueue(queue, queues)
      const { isDone, pause } = await change(pauseQueue, { queue, by: resolvePause(options, 'pause') })
      if (isDone) return { paused: true }
      if (pause === null) throw unreadable()
      return { paused: false, because: 'already_paused', by: pause.by, at: pause.at }
    },
    async resume(queue, options) {
      assertQueue(queue, queues)
      const { isDone, pause } = await change(resumeQueue, { queue, by: resolvePause(options, 'resume') })
      if (isDone) return { resumed: true }
      const last = pause?.isPaused ? null : pause
      return { resumed: false, because: 'not_paused', by: last?.by ?? null, at: last?.at ?? null }
    },
  }
}

interface Change {
  readonly isDone: boolean
  readonly pause: Pause | null
}

const done: Change = { isDone: true, pause: null }

async function pauseOf(tx: Pick<Database, 'run'>, names: Names, queue: string): Promise<Pause | null> {
  const [row] = await tx.run(readPauses(names, [queue]))
  if (row?.pause === undefined) throw unreadable()
  return pauseFrom(row.pause)
}

function unreadable(): OutboxError {
  const sentence = 'the client renames the columns of its answers: whether the queue is paused cannot be read'
  return new OutboxError('OUTBOX_UNKNOWN_HANDLE', sentence)
}
