import { OutboxError } from './errors.ts'
import { isUuid } from './uuid.ts'
import { expected } from './validate.ts'

/** A place in the list of operations: newest first. */
export interface OperationCursor {
  /** When it began, in microseconds since 1970, as text. */
  readonly startedMicros: string
  readonly id: string
}

const form = /^(-?\d{1,16})-(.+)$/

/** What callers keep: opaque to them, fit for a URL. */
export function operationCursorText({ startedMicros, id }: OperationCursor): string {
  return `${startedMicros}-${id}`
}

export function readOperationCursor(given: string): OperationCursor {
  const [, startedMicros, id] = form.exec(given) ?? []
  if (startedMicros !== undefined && isUuid(id)) return { startedMicros, id }
  const sentence = expected('after', 'to be the `next` of a page of operations', given)
  throw new OutboxError('OUTBOX_INVALID_OPTION', sentence)
}
