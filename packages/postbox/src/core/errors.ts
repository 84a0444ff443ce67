/**
 * Every error code, with the next step for whoever meets it. `docs/reference/errors.md` is generated from this table,
 * so a code cannot exist without its explanation.
 */
export const catalogue = {
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
    'Pass the transaction of pg, postgres.js or PGlite as it is, or `{ query(text, values), inTransaction }`.',
  OUTBOX_NOT_IN_TRANSACTION:
    'Begin a transaction and pass the handle that owns it: the message must commit with your rows. To publish without one, use publishNow.',
  OUTBOX_NO_AMBIENT_TRANSACTION:
    'Call `outbox.current` inside `outbox.within(tx, work)`, or pass the transaction yourself.',
  OUTBOX_NO_DATABASE:
    'Give `database` to createOutbox. Without it an outbox can only publish in transactions of yours.',
  OUTBOX_DUPLICATE_SUBSCRIBER:
    'Give the queue one handler that does both, or publish to two queues: two subscribers would split the messages.',
  OUTBOX_SCHEMA_MISSING:
    'Run `await outbox.migrate()`, or put `await outbox.schemaSql()` into your own migrations.',
  OUTBOX_SCHEMA_OUTDATED: 'Run `await outbox.migrate()` with this version of postbox before starting it.',
  OUTBOX_SCHEMA_NEWER:
    'Deploy the version of postbox that made this schema, or a later one. Nothing was changed.',
  OUTBOX_UNSUPPORTED_DATABASE:
    'Use a database with the encoding UTF8: in any other, a key or a header could fail inside your transaction.',
  OUTBOX_LEASE_LOST:
    'The message is delivered again. Look for a blocked event loop, an exhausted pool or a database that was away.',
  OUTBOX_HANDLER_TIMEOUT: 'Pass `context.signal` on to what the handler awaits, or raise `timeoutMs`.',
  OUTBOX_STOPPING: 'Let the handler give up when its signal aborts, or raise `stopTimeoutMs`.',
  OUTBOX_STATEMENT_TIMEOUT: 'Look for locks, an overloaded server or a dead connection. It is tried again.',
  OUTBOX_TABLE_TAKEN:
    'Choose another `table` (or `schema`) in createOutbox: postbox never alters a table it did not make.',
} as const satisfies Record<`OUTBOX_${string}`, string>

export type ErrorCode = keyof typeof catalogue

const brand: unique symbol = Symbol.for('postbox.error') as never

/** A misuse or a broken database: `code` for machines, `message` for people, `hint` for the next step. */
export class OutboxError extends Error {
  override readonly name = 'OutboxError'
  readonly code: ErrorCode
  /** What to do about it. */
  readonly hint: string
  /** Where the code is explained. */
  readonly docs: string
  readonly [brand] = true
  readonly #sentence: string

  constructor(code: ErrorCode, sentence: string, options?: ErrorOptions) {
    super(`${sentence}${/[.?!]$/.test(sentence) ? '' : '.'} ${catalogue[code]}`, options)
    this.#sentence = sentence
    this.code = code
    this.hint = catalogue[code]
    this.docs = `docs/reference/errors.md#${code.toLowerCase()}`
  }

  /** The same error, saying where in a larger input it was found (`bodies[3]`); other errors as they are. */
  static at(place: string, error: unknown): unknown {
    if (!(error instanceof OutboxError)) return error
    const cause = error.cause === undefined ? undefined : { cause: error.cause }
    return new OutboxError(error.code, `${place}: ${error.#sentence}`, cause)
  }

  /** Tells our errors without `instanceof`, which fails when two copies of the package are loaded. */
  static is(error: unknown, code?: ErrorCode): error is OutboxError {
    if (typeof error !== 'object' || error === null || !(brand in error)) return false
    return code === undefined || (error as OutboxError).code === code
  }
}
