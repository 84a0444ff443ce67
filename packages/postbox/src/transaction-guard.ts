import type { Handle } from './adapters/executor.ts'
import { notInTransaction } from './not-in-transaction.ts'

/**
 * Runs a statement in the caller's transaction, or refuses: outside one the message would be committed on its own, whatever becomes of
 * the caller's rows. The handle is asked and the statement sent without a pause between, so that nothing can come between. Where the
 * handle cannot tell, the statement itself finds out by a mark, which costs one more round trip.
 */
export async function runInside<Row>(
  handle: Handle,
  send: (mark: string | null) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  return isSurelyInside(handle) ? send(null) : (await import('./transaction-mark.ts')).runMarked(handle, send)
}

/** The check alone, for an empty batch. */
export async function assertInside(handle: Handle): Promise<void> {
  if (!isSurelyInside(handle)) await (await import('./transaction-mark.ts')).assertMarkable(handle)
}

/** False: only the server can tell. */
function isSurelyInside(handle: Handle): boolean {
  const state = handle.transactionState()
  if (state.inside === false) throw notInTransaction(handle, state.because)
  return state.inside === true
}
