import { runtimeError } from '../../core/runtime-errors.ts'
import { sqlState } from '../../core/sql-state.ts'
import type { Statement } from '../../sql/statement.ts'
import type { Work } from './operation.ts'
import { operations, patient } from './operations.ts'
import { Blocked, databaseError, type Transaction } from './transaction.ts'

export function perform<Row>(
  { name, input, values }: Statement<Row>,
  work: Omit<Work, 'values'>,
): readonly Row[] {
  const operation = operations.get(name)
  if (operation === undefined) {
    const sentence = `the memory store has no schema and runs no SQL: it knows nothing of the statement \`${name}\``
    throw runtimeError('OUTBOX_NO_SQL', sentence)
  }
  return operation({ ...work, values }, input as never) as readonly Row[]
}

/** Tries again whenever who was in the way has ended; a statement that is not patient fails at once. */
export async function patiently<Row>(
  waiter: Transaction | null,
  { name }: Statement<Row>,
  attempt: (seen: unknown) => readonly Row[],
): Promise<readonly Row[]> {
  for (let seen: unknown = null; ; ) {
    try {
      return attempt(seen)
    } catch (error) {
      if (!(error instanceof Blocked) || !patient.has(name)) throw refusal(error)
      await endOf(error.by, waiter)
      seen = error.seen
    }
  }
}

/** For what cannot wait. */
export function atOnce<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw refusal(error)
  }
}

function refusal(error: unknown): unknown {
  if (!(error instanceof Blocked)) return error
  return databaseError(sqlState.lockNotAvailable, 'a transaction that has not ended is in the way')
}

async function endOf(other: Transaction, waiter: Transaction | null): Promise<void> {
  for (let tx: Transaction | null = other; tx !== null; tx = tx.waitsFor) {
    if (tx === waiter) throw databaseError('40P01', 'two transactions wait for each other')
  }
  if (waiter !== null) waiter.waitsFor = other
  await new Promise<void>((resolve) => void other.waiters.push(resolve))
}
