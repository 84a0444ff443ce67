import type { Executor, Handle, TransactionState } from '../adapters/executor.ts'
import type { OwnHandle } from '../adapters/own.ts'
import { recogniseHandle } from '../adapters/recognise.ts'
import { OutboxError } from '../core/errors.ts'
import { runtimeError } from '../core/runtime-errors.ts'
import type { MemoryTransaction } from './memory/memory-database.ts'

/** A transaction of the memory store, to pass to `publish`. */
export interface TestTransaction extends OwnHandle {
  /** Always refused: there is no SQL in memory. */
  query(text: string, values: readonly unknown[]): Promise<readonly never[]>
  readonly inTransaction: () => boolean
  /** Throws away what was written in it. `transaction` then resolves as usual. */
  rollback(): void
}

/** Whose it is, too: a transaction of one test outbox means nothing to another. */
const transactions = new WeakMap<
  object,
  { readonly transaction: MemoryTransaction; readonly database: () => Executor }
>()

export function testTransaction(transaction: MemoryTransaction, database: () => Executor): TestTransaction {
  const handle: TestTransaction = {
    query: async (text) => {
      const sentence = `the test outbox keeps its messages in memory and runs no SQL, got ${JSON.stringify(text)}`
      throw runtimeError('OUTBOX_NO_SQL', sentence)
    },
    inTransaction: () => transaction.isOpen,
    rollback: () => transaction.rollback(),
  }
  transactions.set(handle, { transaction, database })
  return handle
}

/**
 * Where a handle that is passed to a taken-over outbox writes. A transaction of the test kit: there. One of a real client: at once, as if it had
 * been committed; it is refused where a real outbox would refuse it, as far as the handle itself can tell. A stand-in of the test's own: at
 * once, too.
 */
export function testHandle(tx: unknown, database: () => Executor): Handle {
  const own = transactions.get(tx as object)
  if (own !== undefined && own.database !== database)
    throw new OutboxError('OUTBOX_UNKNOWN_HANDLE', 'this transaction is of another test outbox')
  if (own !== undefined) return { client: 'test', singleSession: true, ...onTransaction(own.transaction) }
  const { client, transactionState } = recognised(tx)
  const memory = database()
  return {
    client,
    singleSession: true,
    transactionState,
    run: (statement) => memory.run(statement),
    delivered: async () => memory.delivered?.(),
  }
}

function onTransaction(own: MemoryTransaction): Pick<Handle, 'run' | 'transactionState'> {
  const transactionState = (): TransactionState =>
    own.isOpen ? { inside: true } : { inside: false, because: 'ended' }
  return { run: (statement) => own.run(statement), transactionState }
}

function recognised(tx: unknown): Pick<Handle, 'client' | 'transactionState'> {
  try {
    const { client, transactionState } = recogniseHandle(tx)
    return { client, transactionState: () => unlessUnknown(transactionState()) }
  } catch (error) {
    const isStandIn = typeof tx === 'object' && tx !== null && !(tx instanceof Promise)
    if (!isStandIn || !OutboxError.is(error, 'OUTBOX_UNKNOWN_HANDLE')) throw error
    return { client: 'stand-in', transactionState: () => ({ inside: true }) }
  }
}

/** Only the server could tell, and it is not asked. */
function unlessUnknown(state: TransactionState): TransactionState {
  return state.inside === 'unknown' ? { inside: true } : state
}
