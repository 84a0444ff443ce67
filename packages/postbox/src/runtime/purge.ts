import type { Database } from '../adapters/executor.ts'
import { OutboxError } from '../core/errors.ts'
import type { Purged, PurgeOptions } from '../core/purge-options.ts'
import type { Statement } from '../sql/statement.ts'
import { readCommitted } from './read-committed.ts'

// Milliseconds for a batch: nobody else is kept waiting, and an abort is soon heard.
const batchSize = 5_000

/** Deletes batch by batch, each in a transaction of its own, until nothing is left that is old enough or the signal aborts. */
export async function purgeAll(
  database: Database,
  batch: (limit: number) => Statement<{ readonly purged: string }>,
  { signal }: Pick<PurgeOptions, 'signal'>,
): Promise<Purged> {
  let purged = 0
  while (signal?.aborted !== true) {
    const count = await purgedBy(database, batch(batchSize))
    purged += count
    if (count < batchSize) break
  }
  return { purged }
}

/** In another isolation two purges at once would fail each other. */
async function purgedBy(
  database: Database,
  statement: Statement<{ readonly purged: string }>,
): Promise<number> {
  const [row] = await readCommitted(database, (tx) => tx.run(statement))
  // Taken for none, it would seem to be done; taken for a full batch, it would never be.
  if (row?.purged !== undefined) return Number(row.purged)
  const sentence = 'the client renames the columns of its answers: how much was purged cannot be read'
  throw new OutboxError('OUTBOX_UNKNOWN_HANDLE', sentence)
}
