import type { Handle, TransactionState } from './adapters/executor.ts'
import { type Outside, whyOutside } from './adapters/outside.ts'
import type { OutboxError } from './core/errors.ts'
import { runtimeError } from './core/runtime-errors.ts'
import { sqlState, sqlStateOf } from './core/sql-state.ts'
import { markTransaction, readMark } from './sql/mark-transaction.ts'

// The same for all: messages published at once on one connection must not take each other's mark for the end of the transaction.
const mark = 'open'

/** What the handle has said of itself, which was not yes. */
type Doubt = Exclude<TransactionState, { readonly inside: true }>

/**
 * Refuses a handle that says that it is in no transaction. Where it cannot tell, the statement itself finds out by a mark, which costs one more
 * round trip.
 */
export async function runMarked<Row>(
  handle: Handle,
  doubt: Doubt,
  send: (mark: string) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  await markOpen(handle, doubt)
  const rows = await send(mark)
  if (rows.length === 0) await assertMarked(handle)
  return rows
}

/** The check alone. */
export async function assertMarkable(handle: Handle, doubt: Doubt): Promise<void> {
  await markOpen(handle, doubt)
  await assertMarked(handle)
}

/** In a transaction that has failed, the mark fails first: nothing else is sent. */
async function markOpen(handle: Handle, doubt: Doubt): Promise<void> {
  if (doubt.inside === false) throw notInside(handle, doubt.because)
  try {
    await handle.run(markTransaction(mark))
  } catch (error) {
    if (sqlStateOf(error) !== sqlState.failedTransaction) throw error
    throw notInside(handle, 'failed')
  }
}

async function assertMarked(handle: Handle): Promise<void> {
  const [row] = await handle.run(readMark(mark))
  if (row?.inside !== 'true') throw notInside(handle, 'unmarked')
}

function notInside({ client }: Handle, because: Outside): OutboxError {
  const sentence = `the ${client} handle is not inside a transaction: ${whyOutside(because)}`
  return runtimeError('OUTBOX_NOT_IN_TRANSACTION', sentence)
}
