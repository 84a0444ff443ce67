import { OutboxError } from './errors.ts'
import { show } from './show.ts'
import { suggest } from './suggest.ts'
import { assertValue, name } from './validate.ts'

const check = name(255)

/** Refuses what cannot be a queue, and (when the queues are known) what is not one of them. */
export function assertQueue(
  queue: unknown,
  known: Readonly<Record<string, unknown>> | null,
): asserts queue is string {
  assertValue('OUTBOX_INVALID_QUEUE', { label: 'queue', check, value: queue })
  if (known === null || Object.hasOwn(known, queue as string)) return
  const names = Object.keys(known)
  const meant = suggest(queue as string, names)
  const end = meant === undefined ? `known are: ${names.join(', ') || 'none'}` : `did you mean "${meant}"?`
  throw new OutboxError('OUTBOX_UNKNOWN_QUEUE', `no queue is named ${show(queue)}: ${end}`)
}
