import type { Executor } from '../adapters/executor.ts'
import type { OutboxError } from '../core/errors.ts'
import type { QueueMap } from '../core/queues.ts'
import { isOrdered } from '../core/queues.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import { show } from '../core/show.ts'
import type { Names } from '../sql/names.ts'
import { registerQueues } from '../sql/register-queues.ts'

/** Whoever starts agrees with everybody else on which queues are in the order of their keys, or does not start. */
export async function registerOrders(
  database: Executor,
  names: Names,
  { map, served }: { readonly map: QueueMap | null; readonly served: readonly string[] },
): Promise<void> {
  const queues = [...new Set([...Object.keys(map ?? {}), ...served])]
  if (queues.length === 0) return
  const ordered = queues.filter((queue) => isOrdered(map, queue))
  const others = queues.filter((queue) => !isOrdered(map, queue))
  const [differing] = await database.run(registerQueues(names, { ordered, others }))
  if (differing === undefined) return
  throw orderMismatch(names, differing.name)
}

export function orderMismatch({ queues }: Pick<Names, 'queues'>, queue: string): OutboxError {
  const sentence = `queue ${show(queue)} is in the order of its keys, as ${queues} says; this outbox has it without \`order: 'key'\``
  return runtimeError('OUTBOX_ORDER_MISMATCH', sentence)
}
