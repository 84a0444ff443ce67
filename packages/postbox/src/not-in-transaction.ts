import type { Handle } from './adapters/executor.ts'
import { OutboxError } from './core/errors.ts'

export function notInTransaction(handle: Handle, because: string): OutboxError {
  const sentence = `the ${handle.client} handle is not inside a transaction: ${because}`
  return new OutboxError('OUTBOX_NOT_IN_TRANSACTION', sentence)
}
