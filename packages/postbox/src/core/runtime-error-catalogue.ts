/** The error codes that are loaded with what throws them, so that no publisher carries them: of refused handles, of the tables, and of an outbox at work. */
export const runtimeErrorCatalogue = {
  OUTBOX_NOT_IN_TRANSACTION:
    'Begin a transaction and pass the handle that owns it: messages commit with your rows. Only publishNow does without one.',
  OUTBOX_SCHEMA_MISSING:
    'Run `await outbox.migrate()`, or put `await outbox.schemaSql()` into your own migrations.',
  OUTBOX_SCHEMA_OUTDATED: 'Run `await outbox.migrate()` with this version of postbox before starting it.',
  OUTBOX_SCHEMA_NEWER:
    'Deploy the version of postbox that made this schema, or a later one. Nothing was changed.',
  OUTBOX_SCHEMA_DRIFT:
    'Read the SQL below each difference and run it, in this order, as the owner of the tables; `differences` has it for programs.',
  OUTBOX_UNSUPPORTED_DATABASE:
    'Use a database with the encoding UTF8: in any other, a key or a header could fail inside your transaction.',
  OUTBOX_ORDER_MISMATCH:
    "Give the queue `order: 'key'` in every service that publishes or subscribes to it (share it by defineQueues). To give the order up, stop them all and set `message_order` to 'none' in that table.",
  OUTBOX_HANDLER_TIMEOUT: 'Pass `context.signal` on to what the handler awaits, or raise `timeoutMs`.',
  OUTBOX_STOPPING: 'Let the handler give up when its signal aborts, or raise `stopTimeoutMs`.',
  OUTBOX_INVALID_OUTCOME:
    'Call the decision: `context.retry()`. Other values that a handler returns are ignored.',
  OUTBOX_INVALID_POLICY:
    'Correct the function that the message names: it answers at once, without a promise, and does not throw.',
  OUTBOX_DELIVERY_OVER:
    'Await what the handler starts, and publish before it ends; afterwards publish in a transaction of yours.',
  OUTBOX_ALREADY_DECIDED:
    'Call context.transaction once for a delivery, and before any decision: its commit is the acknowledgement.',
  OUTBOX_STATEMENT_TIMEOUT: 'Look for locks, an overloaded server or a dead connection. It is tried again.',
  OUTBOX_CANNOT_TAKE_OVER:
    'Take over an outbox that does not run, dispose the test outbox at the end of each test, and use each only until then.',
  OUTBOX_NO_SQL:
    'Give the code under test a stand-in or a real transaction for its own SQL, or run it on PGlite or Postgres.',
  OUTBOX_UNKNOWN_OPERATION:
    'Give the `operation` that replayAll returned, or find it by `deadLetters.operations()`. A discard is not resumed: discard again.',
  OUTBOX_TABLE_TAKEN:
    'Choose another `table` (or `schema`) in createOutbox: postbox never alters a table it did not make.',
} as const satisfies Record<`OUTBOX_${string}`, string>

export type RuntimeErrorCode = keyof typeof runtimeErrorCatalogue
