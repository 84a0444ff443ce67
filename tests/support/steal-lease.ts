import type { MemoryDatabase } from '../../packages/postbox/src/testing/memory/memory-database.ts'
import { partsOf } from '../../packages/postbox/src/testing/take-over.ts'

/** Of an outbox that a test outbox has taken over: as if another process had claimed the message meanwhile. */
export function stealLease(outbox: object, seq: string): void {
  const memory = partsOf(outbox).seam.database() as MemoryDatabase
  memory.alter(Number(seq), { leaseToken: '00000000-0000-4000-8000-000000000000' })
}
