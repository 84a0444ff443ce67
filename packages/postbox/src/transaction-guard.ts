import type { Handle } from './adapters/executor.ts'
import { OutboxError } from './core/errors.ts'
import { markTransaction, readMark } from './sql/mark-transaction.ts'

// The same for all: messages published at once on one connection must not take each other's mark for the end of the transaction.
const mark = 'open'

/**
 * Runs a statement in the caller's transaction, or refuses: outside one the message would be committed on its own, whatever becomes of
 * the caller's rows. The handle is asked and the statement sent without a pause between, so that nothing can come between. Where the
 * handle cannot tell, the statement itself finds out by a mark, which costs one more round trip.
 */
export async function runInside<Row>(
  handle: Handle,
  send: (mark: string | null) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const state = handle.transactionState()
  if (state.inside === false) throw notInTransaction(handle, state.because)
  if (state.inside === true) return send(null)
  await markOpen(handle)
  const rows = await send(mark)
  if (rows.length === 0) await assertMarked(handle)
  return rows
}

/** The check alone, for an empty batch. */
export async function assertInside(handle: Handle): Promise<void> {
  const state = handle.transactionState()
  if (state.inside === false) throw notInTransaction(handle, state.because)
  if (state.inside === true) return
  await markOpen(handle)
  await assertMarked(handle)
}

/** In a transaction that has failed, the mark fails first: nothing else is sent. */
async function markOpen(handle: Handle): Promise<void> {
  try {
    await handle.run(markTransaction(mark))
  } catch (error) {
    const states = await import('./core/sql-state.ts').catch(() => null)
    if (states === null || states.sqlStateOf(error) !== states.sqlState.failedTransaction) throw error
    throw notInTransaction(handle, 'its transaction has already failed: ROLLBACK first')
  }
}

async function assertMarked(handle: Handle): Promise<void> {
  const [row] = await handle.run(readMark(mark))
  if (row?.inside !== 'true') throw notInTransaction(handle, 'no transaction is open on this connection')
}

function notInTransaction(handle: Handle, because: string): OutboxError {
  const sentence = `the ${handle.client} handle is not inside a transaction: ${because}`
  return new OutboxError('OUTBOX_NOT_IN_TRANSACTION', sentence)
}
