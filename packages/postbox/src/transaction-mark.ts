import type { Handle } from './adapters/executor.ts'
import { sqlState, sqlStateOf } from './core/sql-state.ts'
import { notInTransaction } from './not-in-transaction.ts'
import { markTransaction, readMark } from './sql/mark-transaction.ts'

// The same for all: messages published at once on one connection must not take each other's mark for the end of the transaction.
const mark = 'open'

/** Runs a statement in the transaction of a handle that cannot tell whether it has one. Loaded where there is such a handle. */
export async function runMarked<Row>(
  handle: Handle,
  send: (mark: string) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  await markOpen(handle)
  const rows = await send(mark)
  if (rows.length === 0) await assertMarked(handle)
  return rows
}

/** The check alone. */
export async function assertMarkable(handle: Handle): Promise<void> {
  await markOpen(handle)
  await assertMarked(handle)
}

/** In a transaction that has failed, the mark fails first: nothing else is sent. */
async function markOpen(handle: Handle): Promise<void> {
  try {
    await handle.run(markTransaction(mark))
  } catch (error) {
    if (sqlStateOf(error) !== sqlState.failedTransaction) throw error
    throw notInTransaction(handle, 'its transaction has already failed: ROLLBACK first')
  }
}

async function assertMarked(handle: Handle): Promise<void> {
  const [row] = await handle.run(readMark(mark))
  if (row?.inside !== 'true') throw notInTransaction(handle, 'no transaction is open on this connection')
}
