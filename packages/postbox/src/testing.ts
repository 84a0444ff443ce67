// The public surface of `postbox/testing`.
export { createTestOutbox } from './testing/create-test-outbox.ts'
export type {
  FeedOptions,
  PublishedMessage,
  TestOptions,
  TestOutbox,
  TestOutboxOf,
} from './testing/test-outbox.ts'
export type { TestTransaction } from './testing/test-transaction.ts'
