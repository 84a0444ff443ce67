import type { OutboxError } from '../core/errors.ts'
import { runtimeError } from '../core/runtime-errors.ts'

/** The promise's value, or the error if it does not settle in time. The timer is cleared either way. */
export async function before<T>(promise: Promise<T>, ms: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms)
  })
  try {
    return await Promise.race([promise, deadline])
  } finally {
    clearTimeout(timer)
  }
}

export function statementTimeout(what: string, ms: number): OutboxError {
  return runtimeError('OUTBOX_STATEMENT_TIMEOUT', `${what} took longer than ${ms} ms`)
}
