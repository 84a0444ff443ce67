import type { Handle } from './adapters/executor.ts'

/**
 * Runs a statement in the caller's transaction, or refuses: outside one the message would be committed on its own, whatever becomes of
 * the caller's rows. The handle is asked and the statement sent without a pause between, so that nothing can come between. What is done
 * with a handle that does not say yes is loaded then.
 */
export async function runInside<Row>(
  handle: Handle,
  send: (mark: string | null) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const state = handle.transactionState()
  if (state.inside === true) return send(null)
  return (await import('./transaction-mark.ts')).runMarked(handle, state, send)
}

/** The check alone, for an empty batch. */
export async function assertInside(handle: Handle): Promise<void> {
  const state = handle.transactionState()
  if (state.inside !== true) await (await import('./transaction-mark.ts')).assertMarkable(handle, state)
}
