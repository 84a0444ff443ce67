// biome-ignore-all lint/suspicious/noExplicitAny: these are the mistakes of those who do not compile
import { createOutbox, type Outbox } from 'postbox'
import { type Given, halfEmoji, type Mistake, publish } from './mistakes.ts'

const circular: Record<string, unknown> = { a: { list: [1] } }
circular['a'] = { list: [1, circular] }
const unreadable = {
  get total(): number {
    throw new Error('no total yet')
  },
}

const notHandles: readonly (readonly [unknown, string])[] = [
  [null, '`null`'],
  [undefined, '`undefined`'],
  [42, '`42`'],
  ['orders', '`"orders"`'],
  [true, '`true`'],
  [{}, '`{}`'],
  [[], '`[]` (array)'],
  [() => {}, '`function`'],
  [new Date(0), '1970-01-01'],
]

const withMiddleware = (schema: string, publish: (...given: any) => unknown): Outbox =>
  createOutbox({ schema, middleware: [{ publish: publish as never }] })

/** Publishes a message through a middleware that does wrong. */
const through =
  (wrong: (...given: any) => unknown) =>
  ({ schema, tx }: Given): unknown =>
    withMiddleware(schema, wrong).publish(tx, 'orders', 1)

/** Mistakes in what is published, and in what it is published with. */
export const messageMistakes: Record<string, readonly Mistake[]> = {
  bodies: [
    ['undefined', 'OUTBOX_INVALID_BODY', 'body is undefined', publish(undefined)],
    [
      'a bigint',
      'OUTBOX_INVALID_BODY',
      'body.lines[0].amount is a bigint',
      publish({ lines: [{ amount: 12n }] }),
    ],
    ['NaN', 'OUTBOX_INVALID_BODY', 'body.price is NaN', publish({ price: Number.NaN })],
    ['a circular value', 'OUTBOX_INVALID_BODY', 'body.a.list[1] refers back', publish(circular)],
    ['a Date without a schema', 'OUTBOX_INVALID_BODY', 'body.at is a Date', publish({ at: new Date() })],
    ['a Map without a schema', 'OUTBOX_INVALID_BODY', 'body.map is of type Map', publish({ map: new Map() })],
    ['undefined inside an array', 'OUTBOX_INVALID_BODY', 'body[1] is undefined', publish([1, undefined])],
    ['a function', 'OUTBOX_INVALID_BODY', 'body.ship is a function', publish({ ship: () => {} })],
    ['a promise', 'OUTBOX_INVALID_BODY', 'an await is missing', publish({ order: Promise.resolve() })],
    ['bytes inside JSON', 'OUTBOX_INVALID_BODY', 'body.file is binary', publish({ file: new Uint8Array(1) })],
    ['a getter that throws', 'OUTBOX_INVALID_BODY', 'no total yet', publish(unreadable)],
    ['a text with half an emoji', 'OUTBOX_INVALID_BODY', 'unpaired surrogate', publish(halfEmoji)],
    ['a body over the limit', 'OUTBOX_BODY_TOO_LARGE', '2000 bytes', publish('x'.repeat(2_000))],
    ['bytes over the limit', 'OUTBOX_BODY_TOO_LARGE', '1025 bytes', publish(new Uint8Array(1_025))],
    [
      'a body that its schema refuses',
      'OUTBOX_INVALID_BODY',
      'orderId',
      ({ outbox, tx }) => outbox.publish(tx, 'checked', { orderId: 'one' }),
    ],
    [
      'a Date that JSON makes a string of, under a schema that wants a Date',
      'OUTBOX_INVALID_BODY',
      'at:',
      ({ outbox, tx }) => outbox.publish(tx, 'dated', { at: new Date() }),
    ],
    [
      'a schema that throws',
      'OUTBOX_INVALID_BODY',
      'schema is broken',
      ({ outbox, tx }) => outbox.publish(tx, 'broken', { a: 1 }),
    ],
    [
      'a body that its codec refuses',
      'OUTBOX_INVALID_BODY',
      'only numbers',
      ({ outbox, tx }) => outbox.publish(tx, 'encoded', 'text'),
    ],
    [
      'one bad body in a batch',
      'OUTBOX_INVALID_BODY',
      'bodies[2]',
      ({ outbox, tx }) => outbox.publishMany(tx, 'orders', [1, 2, { a: 3n }, 4]),
    ],
    [
      'bodies that are no array',
      'OUTBOX_INVALID_BODY',
      '"abc"',
      ({ outbox, tx }) => outbox.publishMany(tx, 'orders', 'abc'),
    ],
    [
      'a content type that does not fit',
      'OUTBOX_INVALID_BODY',
      '"image/png"',
      publish({ a: 1 }, { contentType: 'image/png' }),
    ],
  ],
  headers: [
    [
      'headers that are no object',
      'OUTBOX_INVALID_HEADERS',
      '"tenant=1"',
      publish(1, { headers: 'tenant=1' }),
    ],
    [
      'a header that is a number',
      'OUTBOX_INVALID_HEADERS',
      '`7` (number)',
      publish(1, { headers: { tenant: 7 } }),
    ],
    [
      'a header with NUL',
      'OUTBOX_INVALID_HEADERS',
      'a\\u0000b',
      publish(1, { headers: { tenant: 'a\u0000b' } }),
    ],
    [
      'a header name with half an emoji',
      'OUTBOX_INVALID_HEADERS',
      '\\ud83d',
      publish(1, { headers: { [halfEmoji]: '1' } }),
    ],
    ['an empty header name', 'OUTBOX_INVALID_HEADERS', '`""`', publish(1, { headers: { '': '1' } })],
    ['a Map of headers', 'OUTBOX_INVALID_HEADERS', 'Map', publish(1, { headers: new Map([['a', 'b']]) })],
    [
      'two correlation ids',
      'OUTBOX_INVALID_HEADERS',
      '"c-2"',
      publish(1, { headers: { 'Correlation-Id': 'c-1' }, correlationId: 'c-2' }),
    ],
    [
      'two content types',
      'OUTBOX_INVALID_HEADERS',
      '"image/gif"',
      publish(new Uint8Array(1), {
        headers: { 'content-type': 'image/png' },
        contentType: 'image/gif',
      }),
    ],
    [
      'the content type of a middleware',
      'OUTBOX_INVALID_HEADERS',
      '`content-type`',
      through((_, next) => next({ 'Content-Type': 'text/plain' })),
    ],
    [
      'a header of a middleware that is a number',
      'OUTBOX_INVALID_HEADERS',
      '`7` (number)',
      through((_, next) => next({ tenant: 7 })),
    ],
    [
      'headers over the limit',
      'OUTBOX_INVALID_HEADERS',
      'bytes',
      publish(1, { headers: { big: 'x'.repeat(2_000) } }),
    ],
  ],
  middleware: [
    ['one that answers nothing', 'OUTBOX_INVALID_OPTION', '`undefined`', through(async () => {})],
    ['one that answers for fewer bodies', 'OUTBOX_INVALID_OPTION', '`[]`', through(async () => [])],
    [
      'one that answers with something else',
      'OUTBOX_INVALID_OPTION',
      '"published"',
      through(async () => ['published']),
    ],
    [
      'a body that no middleware gets to see',
      'OUTBOX_INVALID_BODY',
      'a bigint',
      ({ schema, tx }) => withMiddleware(schema, async () => [null]).publish(tx, 'orders', 1n),
    ],
    [
      'a handle that no middleware gets to see',
      'OUTBOX_UNKNOWN_HANDLE',
      '`{}`',
      ({ schema }) => withMiddleware(schema, async () => [null]).publish({} as never, 'orders', 1),
    ],
  ],
  dates: [
    ['a delay and a time', 'OUTBOX_INVALID_TIME', '`5` (number)', publish(1, { delayMs: 5, at: new Date() })],
    ['a negative delay', 'OUTBOX_INVALID_TIME', '`-1`', publish(1, { delayMs: -1 })],
    ['a delay that is NaN', 'OUTBOX_INVALID_TIME', '`NaN`', publish(1, { delayMs: Number.NaN })],
    [
      'a delay for ever',
      'OUTBOX_INVALID_TIME',
      '`Infinity`',
      publish(1, { delayMs: Number.POSITIVE_INFINITY }),
    ],
    ['a delay as text', 'OUTBOX_INVALID_TIME', '"5s"', publish(1, { delayMs: '5s' })],
    ['an invalid Date', 'OUTBOX_INVALID_TIME', 'Invalid Date', publish(1, { at: new Date('soon') })],
    ['a time as text', 'OUTBOX_INVALID_TIME', '"2030-01-01"', publish(1, { at: '2030-01-01' })],
    [
      'a time beyond Postgres’ calendar',
      'OUTBOX_INVALID_TIME',
      '+275760',
      publish(1, { at: new Date(8.64e15) }),
    ],
    ['null as a time', 'OUTBOX_INVALID_TIME', '`null`', publish(1, { at: null })],
  ],
  handles: [
    ...notHandles.map(
      ([handle, shows]): Mistake => [
        `${Object.prototype.toString.call(handle)} instead of a transaction`,
        'OUTBOX_UNKNOWN_HANDLE',
        shows,
        ({ outbox }) => outbox.publish(handle, 'orders', 1),
      ],
    ),
    [
      'an ORM that has query and transaction',
      'OUTBOX_UNKNOWN_HANDLE',
      'DataSource',
      ({ outbox }) =>
        outbox.publish(
          new (class DataSource {
            query() {}
            transaction() {}
          })(),
          'orders',
          1,
        ),
    ],
    [
      'an unknown handle in publishMany',
      'OUTBOX_UNKNOWN_HANDLE',
      '`{}`',
      ({ outbox }) => outbox.publishMany({}, 'orders', []),
    ],
    [
      'an unknown handle in cancelTimer',
      'OUTBOX_UNKNOWN_HANDLE',
      '`{}`',
      ({ outbox }) => outbox.cancelTimer({}, 'orders', 't'),
    ],
    ['an unknown handle in pending', 'OUTBOX_UNKNOWN_HANDLE', '`{}`', ({ outbox }) => outbox.pending({})],
    ['an unknown handle in `in`', 'OUTBOX_UNKNOWN_HANDLE', '`{}`', ({ outbox }) => outbox.in({})],
    [
      'an unknown handle in `within`',
      'OUTBOX_UNKNOWN_HANDLE',
      '`{}`',
      ({ outbox }) => outbox.within({}, async () => {}),
    ],
    [
      'no ambient transaction',
      'OUTBOX_NO_AMBIENT_TRANSACTION',
      'outbox.current',
      ({ outbox }) => outbox.current.publish('orders', 1),
    ],
    [
      'publishNow without a database',
      'OUTBOX_NO_DATABASE',
      '`database`',
      ({ schema }) => createOutbox({ schema }).publishNow('orders', 1),
    ],
    [
      'start without a database',
      'OUTBOX_NO_DATABASE',
      '`database`',
      ({ schema }) => createOutbox({ schema }).start(),
    ],
    [
      'migrate without a database',
      'OUTBOX_NO_DATABASE',
      '`database`',
      ({ schema }) => createOutbox({ schema }).migrate(),
    ],
    [
      'a second subscriber on a queue',
      'OUTBOX_DUPLICATE_SUBSCRIBER',
      '"emails"',
      ({ outbox }) => outbox.subscribe('emails', () => {}),
    ],
    [
      'a second subscriber on one of two queues',
      'OUTBOX_DUPLICATE_SUBSCRIBER',
      '"emails"',
      ({ outbox }) => outbox.subscribe(['orders', 'emails'], () => {}),
    ],
    [
      'a batch of a queue that has a subscriber',
      'OUTBOX_DUPLICATE_SUBSCRIBER',
      '"emails"',
      ({ outbox }) => outbox.subscribeBatch('emails', () => {}),
    ],
  ],
}
