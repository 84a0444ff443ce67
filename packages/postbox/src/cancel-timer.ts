import type { Handle } from './adapters/executor.ts'
import { assertQueue } from './core/queue-name.ts'
import { isOrdered, type QueueMap } from './core/queues.ts'
import { assertValue, name } from './core/validate.ts'
import { runStatement } from './run-statement.ts'
import { cancelTimer as statement } from './sql/cancel-timer.ts'
import type { Names } from './sql/names.ts'
import { runInside } from './transaction-guard.ts'

/** A timer, as `cancelTimer` names it. */
export interface TimerName {
  readonly queue: string
  readonly timerId: string
}

/** Loaded when it is needed, as what `publish` does with one message is the most that most services need. */
export async function cancelTimer(
  outbox: { readonly queues: QueueMap | null; readonly names: Names },
  handle: Handle,
  { queue, timerId }: TimerName,
): Promise<boolean> {
  assertQueue(queue, outbox.queues)
  assertValue('OUTBOX_INVALID_OPTION', { label: 'timerId', check: name(1024), value: timerId })
  const cancel = async (): Promise<boolean> => {
    const rows = await runInside(handle, (mark) =>
      runStatement(outbox, handle, statement(outbox.names, { queue, timerId, mark })),
    )
    return rows.length > 0
  }
  if (await cancel()) return true
  // What was joining its key (`joinKeys`) has a new row by now, which only a new snapshot shows. Not that of a repeatable read, but there the first look has failed (40001).
  const mayJoin = outbox.queues === null || isOrdered(outbox.queues, queue)
  return mayJoin && cancel()
}
