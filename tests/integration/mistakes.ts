// biome-ignore-all lint/suspicious/noExplicitAny: these are the mistakes of those who do not compile
import type pg from 'pg'
import { createOutbox, defineSubscriber, exponential } from 'postbox'

/** What is done wrong, the code that answers it, the text that shows which value was wrong, and the doing. */
export type Mistake = readonly [title: string, code: string, shows: string, make: (given: Given) => unknown]

export interface Given {
  readonly outbox: any
  readonly tx: pg.Client
  readonly schema: string
}

export const halfEmoji = '🚚'.slice(0, 1)

const create =
  (options: object) =>
  ({ schema }: Given): unknown =>
    createOutbox({ schema, ...options } as never)

export const publish =
  (body: unknown, options?: object) =>
  ({ outbox, tx }: Given): unknown =>
    outbox.publish(tx, 'orders', body, options)

/** Mistakes in names and options. */
export const mistakes: Record<string, readonly Mistake[]> = {
  names: [
    ['an empty table name', 'OUTBOX_INVALID_NAME', '`""`', create({ table: '' })],
    ['a table name that is no string', 'OUTBOX_INVALID_NAME', '`42`', create({ table: 42 })],
    ['a table name with NUL', 'OUTBOX_INVALID_NAME', 'a\\u0000b', create({ table: 'a\u0000b' })],
    [
      'a table whose index names are too long',
      'OUTBOX_INVALID_NAME',
      't'.repeat(51),
      create({ table: 't'.repeat(51) }),
    ],
    ['a table that is too long only in bytes', 'OUTBOX_INVALID_NAME', 'ü', create({ table: 'ü'.repeat(30) })],
    [
      'a schema that makes the channel too long',
      'OUTBOX_INVALID_NAME',
      's'.repeat(55),
      () => createOutbox({ schema: 's'.repeat(55) }),
    ],
    ['one name for two tables', 'OUTBOX_INVALID_NAME', '"outbox"', create({ names: { dead: 'outbox' } })],
    ['an empty queue name', 'OUTBOX_INVALID_QUEUE', '`""`', ({ outbox, tx }) => outbox.publish(tx, '', 1)],
    [
      'a queue that is no string',
      'OUTBOX_INVALID_QUEUE',
      '`7`',
      ({ outbox, tx }) => outbox.publish(tx, 7, 1),
    ],
    [
      'a queue name of 256 bytes',
      'OUTBOX_INVALID_QUEUE',
      'qqq',
      ({ outbox, tx }) => outbox.publish(tx, 'q'.repeat(256), 1),
    ],
    [
      'a queue name with half an emoji',
      'OUTBOX_INVALID_QUEUE',
      '\\ud83d',
      ({ outbox, tx }) => outbox.publish(tx, `q${halfEmoji}`, 1),
    ],
    [
      'a misspelt queue',
      'OUTBOX_UNKNOWN_QUEUE',
      'did you mean "orders"?',
      ({ outbox, tx }) => outbox.publish(tx, 'ordesr', 1),
    ],
    [
      'a queue called like a member of every object',
      'OUTBOX_UNKNOWN_QUEUE',
      '"constructor"',
      ({ outbox, tx }) => outbox.publish(tx, 'constructor', 1),
    ],
    [
      'a misspelt queue in a list of them',
      'OUTBOX_UNKNOWN_QUEUE',
      'did you mean "orders"?',
      ({ outbox }) => outbox.subscribe(['checked', 'ordesr'], () => {}),
    ],
    [
      'a misspelt queue in a subscriber',
      'OUTBOX_UNKNOWN_QUEUE',
      'did you mean "orders"?',
      () => defineSubscriber({ orders: {} }, 'ordesr' as never, () => {}),
    ],
    [
      'a misspelt queue in cancelTimer',
      'OUTBOX_UNKNOWN_QUEUE',
      '"ordesr"',
      ({ outbox, tx }) => outbox.cancelTimer(tx, 'ordesr', 't'),
    ],
    [
      'a misspelt queue in pending',
      'OUTBOX_UNKNOWN_QUEUE',
      '"ordesr"',
      ({ outbox, tx }) => outbox.pending(tx, { queue: 'ordesr' }),
    ],
  ],
  options: [
    [
      'a misspelt option of createOutbox',
      'OUTBOX_INVALID_OPTION',
      'did you mean `queues`?',
      create({ quees: {} }),
    ],
    [
      'options that are no object',
      'OUTBOX_INVALID_OPTION',
      '`"outbox"`',
      () => createOutbox('outbox' as never),
    ],
    ['an unknown wake', 'OUTBOX_INVALID_OPTION', '"sometimes"', create({ wake: 'sometimes' })],
    ['a body limit of zero', 'OUTBOX_INVALID_OPTION', '`0`', create({ maxBodyBytes: 0 })],
    ['a generation that is no whole number', 'OUTBOX_INVALID_OPTION', '`1.5`', create({ generation: 1.5 })],
    [
      'a codec without decode',
      'OUTBOX_INVALID_OPTION',
      '"text/x"',
      create({ codec: { contentType: 'text/x' } }),
    ],
    [
      'a body that is no schema',
      'OUTBOX_INVALID_OPTION',
      'queue "orders"',
      create({ queues: { orders: { body: 'Order' } } }),
    ],
    ['a logger that is no function', 'OUTBOX_INVALID_OPTION', '`true`', create({ logger: true })],
    [
      'the console as a logger',
      'OUTBOX_INVALID_OPTION',
      'console is the default: leave it out',
      create({ logger: console }),
    ],
    [
      'a database that is none',
      'OUTBOX_INVALID_OPTION',
      'got a string',
      create({ database: 'postgres://user:secret@localhost' }),
    ],
    [
      'a misspelt option of publish',
      'OUTBOX_INVALID_OPTION',
      'did you mean `delayMs`?',
      publish(1, { delayms: 5 }),
    ],
    ['a key that is no string', 'OUTBOX_INVALID_OPTION', '`12`', publish(1, { key: 12 })],
    ['a key with NUL', 'OUTBOX_INVALID_OPTION', 'a\\u0000', publish(1, { key: 'a\u0000' })],
    ['an empty timerId', 'OUTBOX_INVALID_OPTION', '`""`', publish(1, { timerId: '' })],
    ['a timerId of 1,025 bytes', 'OUTBOX_INVALID_OPTION', 'ttt', publish(1, { timerId: 't'.repeat(1_025) })],
    ['an id that is no UUID', 'OUTBOX_INVALID_OPTION', '"order-1"', publish(1, { id: 'order-1' })],
    [
      'an unknown onConflict',
      'OUTBOX_INVALID_OPTION',
      '"merge"',
      publish(1, { timerId: 't', onConflict: 'merge' }),
    ],
    [
      'onConflict without a timer',
      'OUTBOX_INVALID_OPTION',
      '"replace"',
      publish(1, { onConflict: 'replace' }),
    ],
    [
      'the same id twice in a batch',
      'OUTBOX_INVALID_OPTION',
      'bodies[1]',
      ({ outbox, tx }) =>
        outbox.publishMany(tx, 'orders', [1, 2], { id: '01a1de5a-74be-7e76-a02c-6e9c32498e4e' }),
    ],
    [
      'the same timer replaced twice in a batch',
      'OUTBOX_INVALID_OPTION',
      '"t"',
      ({ outbox, tx }) => outbox.publishMany(tx, 'orders', [1, 2], { timerId: 't', onConflict: 'replace' }),
    ],
    [
      'keep and replace in one batch',
      'OUTBOX_INVALID_OPTION',
      '`keep` and `replace`',
      ({ outbox, tx }) =>
        outbox.publishMany(tx, 'orders', [1, 2], (_: unknown, index: number) => ({
          timerId: `t${index}`,
          onConflict: index === 0 ? 'keep' : 'replace',
        })),
    ],
    [
      'a limit of zero in pending',
      'OUTBOX_INVALID_OPTION',
      '`0`',
      ({ outbox, tx }) => outbox.pending(tx, { limit: 0 }),
    ],
    [
      'a misspelt subscriber option',
      'OUTBOX_INVALID_OPTION',
      'did you mean `concurrency`?',
      ({ outbox }) => outbox.subscribe('orders', () => {}, { concurency: 3 }),
    ],
    [
      'a lease that is too short',
      'OUTBOX_INVALID_OPTION',
      '`5`',
      ({ outbox }) => outbox.subscribe('orders', () => {}, { leaseMs: 5 }),
    ],
    [
      'an unknown place for dead letters',
      'OUTBOX_INVALID_OPTION',
      '"nowhere"',
      create({ deadLetters: 'nowhere' }),
    ],
    ['a source with NUL', 'OUTBOX_INVALID_OPTION', 'a\\u0000b', create({ source: 'a\u0000b' })],
    ['a describeError that is none', 'OUTBOX_INVALID_OPTION', '`7`', create({ describeError: 7 })],
    ['an onEvent that is none', 'OUTBOX_INVALID_OPTION', '`true`', create({ onEvent: true })],
    [
      'a misspelt member of a middleware',
      'OUTBOX_INVALID_OPTION',
      'middleware[1]: unknown option `publsh`',
      create({ middleware: [{}, { publsh: () => {} }] }),
    ],
    [
      'a retry policy that is no function',
      'OUTBOX_INVALID_OPTION',
      '"maxAttempts":3',
      ({ outbox }) => outbox.subscribe('orders', () => {}, { retry: { maxAttempts: 3 } }),
    ],
    [
      'a batch of none',
      'OUTBOX_INVALID_OPTION',
      'expected `size`',
      ({ outbox }) => outbox.subscribeBatch('orders', () => {}, { size: 0 }),
    ],
    [
      'no queue to subscribe to',
      'OUTBOX_INVALID_OPTION',
      '`[]`',
      ({ outbox }) => outbox.subscribe([], () => {}),
    ],
    [
      'the same queue twice in one subscription',
      'OUTBOX_INVALID_OPTION',
      '"orders"',
      ({ outbox }) => outbox.subscribe(['orders', 'orders'], () => {}),
    ],
    [
      'a subscriber with another handler',
      'OUTBOX_INVALID_OPTION',
      'a subscriber alone',
      ({ outbox }) =>
        outbox.subscribe(
          defineSubscriber({ orders: {} }, 'orders', () => {}),
          () => {},
        ),
    ],
    [
      'a subscriber with options beside it',
      'OUTBOX_INVALID_OPTION',
      'its options to defineSubscriber, got `{"concurrency":3}`',
      ({ outbox }) =>
        outbox.subscribe(
          defineSubscriber({ orders: {} }, 'orders', () => {}),
          { concurrency: 3 },
        ),
    ],
    [
      'a policy that was not called',
      'OUTBOX_INVALID_OPTION',
      'subscriber of "orders": expected `retry` to be a policy (call it: exponential()), got `exponential`',
      ({ outbox }) => outbox.subscribe('orders', () => {}, { retry: exponential }),
    ],
    [
      'a wrong default of subscribers',
      'OUTBOX_INVALID_OPTION',
      'expected `defaults.retry` to be a function, such as exponential({ … }), got `3`',
      create({ defaults: { retry: 3 } }),
    ],
    [
      'a pace that is one number',
      'OUTBOX_INVALID_OPTION',
      'expected `pollMs` to be { min, max }, each a whole number from 1 to 3600000, got `100` (number). ',
      ({ outbox }) => outbox.subscribe('orders', () => {}, { pollMs: 100 }),
    ],
    [
      'a replay by nobody',
      'OUTBOX_INVALID_OPTION',
      'got `undefined`: give { by }',
      ({ outbox }) => outbox.deadLetters.replay('01a1de5a-74be-7e76-a02c-6e9c32498e4e'),
    ],
    [
      'a replay in the past',
      'OUTBOX_INVALID_OPTION',
      'got `-5`',
      ({ outbox }) =>
        outbox.deadLetters.replay('01a1de5a-74be-7e76-a02c-6e9c32498e4e', { by: 'me', delayMs: -5 }),
    ],
    [
      'a reason that no message dies of',
      'OUTBOX_INVALID_OPTION',
      '"expired"',
      ({ outbox }) => outbox.deadLetters.list({ reason: 'expired' }),
    ],
    [
      'a misspelt reason to count',
      'OUTBOX_INVALID_OPTION',
      "did you mean 'rejected'?",
      ({ outbox }) => outbox.deadLetters.count({ reason: 'rejectd' }),
    ],
    [
      'a subscriber with a misspelt option',
      'OUTBOX_INVALID_OPTION',
      'did you mean `concurrency`?',
      () => defineSubscriber({ orders: {} }, 'orders', () => {}, { concurency: 3 } as never),
    ],
    [
      'a poll ladder upside down',
      'OUTBOX_INVALID_OPTION',
      '"min":9',
      ({ outbox }) => outbox.subscribe('orders', () => {}, { pollMs: { min: 9, max: 1 } }),
    ],
    [
      'a handler that is no function',
      'OUTBOX_INVALID_OPTION',
      '`undefined`',
      ({ outbox }) => outbox.subscribe('orders'),
    ],
  ],
}
