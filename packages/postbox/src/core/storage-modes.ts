/** What becomes of a message that is given up: moved to the dead letters, kept where it lies, or deleted. */
export type DeadLetterStorage = 'table' | 'in-place' | 'discard'

/** What becomes of a message that was delivered: deleted, or moved to a table for audit. */
export type DeliveredStorage = 'delete' | 'table'

/** Where the messages of an outbox end. */
export interface StorageModes {
  readonly deadLetters: DeadLetterStorage
  readonly delivered: DeliveredStorage
}
