// The order of keys: the messages of one, and who may publish to it.
import type { Draft } from '../../core/message.ts'
import type { Landing } from '../../sql/landing.ts'
import type { Letter } from './dead-letters.ts'
import type { MemoryMessage } from './rows.ts'
import { type Transaction, takeKeys } from './transaction.ts'
import { allMessages } from './visible.ts'

/** Before anything is written: whoever waits begins again. */
export function lockKeys(tx: Transaction, drafts: readonly Draft[]): void {
  const keys = drafts.filter((draft) => draft.isOrdered).map(({ queue, key }) => keyName(queue, key))
  takeKeys(tx, [...new Set(keys)])
}

export function keyName(queue: string, key: string | null): string {
  return `${queue}\0${key}`
}

/** Where a dead letter lands when it is replayed. */
export function landingOf({ server }: Transaction, { isParked, row }: Letter): Landing {
  if (isParked) return 'in_place'
  return row.key !== null && server.ordered.has(row.queue) ? 'behind_key' : 'anywhere'
}

/** The messages of a key that live, or are dead and hold it, by seq. */
export function inOrder(tx: Transaction, queue: string, key: string | null): readonly MemoryMessage[] {
  return allMessages(tx).filter(
    (message) =>
      message.queue === queue &&
      message.key !== null &&
      message.key === key &&
      (message.failedAt === null || message.parkedAt !== null),
  )
}
