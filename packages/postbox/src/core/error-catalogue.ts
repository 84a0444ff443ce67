/**
 * The error codes that every outbox may meet, with the next step for whoever meets them; those that are loaded with what throws
 * them are in runtime-error-catalogue.ts. `docs/reference/errors.md` is generated from both, so a code cannot exist without its explanation.
 */
export const errorCatalogue = {
  OUTBOX_INVALID_OPTION: 'Correct the options that the message names; every problem is listed at once.',
  OUTBOX_INVALID_NAME:
    'Choose a shorter or simpler name: Postgres keeps 63 bytes of an identifier, index and channel names included.',
  OUTBOX_INVALID_QUEUE: 'A queue is named by a string of 1 to 255 bytes of valid Unicode without NUL.',
  OUTBOX_UNKNOWN_QUEUE: 'Add the queue to `queues` of createOutbox, or correct the name.',
  OUTBOX_INVALID_BODY:
    'Publish what the queue can carry: JSON values, a string, bytes or null, valid for its schema after it was encoded and decoded.',
  OUTBOX_BODY_TOO_LARGE:
    'Store the large part elsewhere and publish a reference to it, raise `maxBodyBytes`, or publish a batch in parts.',
  OUTBOX_INVALID_HEADERS:
    'Headers are a plain object of strings; content type and correlation id have options of their own.',
  OUTBOX_INVALID_TIME:
    'Give `delayMs` (milliseconds from now) or `at` (a Date, or a Temporal instant), not both.',
  OUTBOX_UNKNOWN_HANDLE:
    'Pass the transaction of pg, postgres.js, PGlite, Drizzle or Kysely as it is, or `{ query(text, values), inTransaction }`.',
  OUTBOX_NO_AMBIENT_TRANSACTION:
    'Call `outbox.current` inside `outbox.within(tx, work)`, or pass the transaction yourself.',
  OUTBOX_NO_DATABASE:
    'Give `database` to createOutbox. Without it an outbox can only publish in transactions of yours.',
  OUTBOX_DUPLICATE_SUBSCRIBER:
    'Give the queue one handler that does both, or publish to two queues: two subscribers would split the messages.',
  OUTBOX_LEASE_LOST:
    'The message is delivered again. Look for a blocked event loop, an exhausted pool or a database that was away.',
} as const satisfies Record<`OUTBOX_${string}`, string>
