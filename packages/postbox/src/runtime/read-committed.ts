import type { Database, Executor } from '../adapters/executor.ts'
import { setReadCommitted } from '../sql/isolation.ts'

/** A transaction of ours. In another isolation than read committed, who comes second would get an error instead of an answer. */
export function readCommitted<T>(database: Database, work: (tx: Executor) => Promise<T>): Promise<T> {
  return database.transaction(async (tx) => {
    await tx.run(setReadCommitted)
    return work(tx)
  })
}
