import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { resolveOutboxOptions } from './outbox-options.ts'
import { typed } from './queues.ts'

const codec = { contentType: 'application/x', encode: () => new Uint8Array(0), decode: () => null }

const resolve = (options: unknown) => () => resolveOutboxOptions(options as never)

const invalid = expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' })

describe('resolveOutboxOptions', () => {
  test('fills the documented defaults and freezes them', () => {
    const settings = resolveOutboxOptions({})

    expect(settings).toMatchObject({
      queues: null,
      schema: 'public',
      table: 'outbox',
      names: {},
      wake: 'quiet',
      deadLetters: 'table',
      delivered: 'delete',
      generation: null,
      source: null,
      describeError: undefined,
      middleware: [],
      onEvent: undefined,
      codec: undefined,
      maxBodyBytes: 1_048_576,
      logger: undefined,
      stopTimeoutMs: 15_000,
      defaults: { concurrency: 10 },
    })
    expect(Object.isFrozen(settings)).toBe(true)
  })

  test.each(['table', 'in-place', 'discard'] as const)('dead letters may be kept: %s', (deadLetters) => {
    expect(resolveOutboxOptions({ deadLetters })).toMatchObject({ deadLetters })
  })

  test.each(['delete', 'table'] as const)('delivered messages may end by: %s', (delivered) => {
    expect(resolveOutboxOptions({ delivered })).toMatchObject({ delivered })
  })

  test('keeps what was given', () => {
    const given = {
      queues: { orders: { body: typed<number>(), codec } },
      schema: 'a',
      table: 'b',
      names: { dead: 'c' },
      wake: 'poll',
      deadLetters: 'discard',
      generation: 0,
      source: 'é'.repeat(127),
      describeError: () => null,
      middleware: [{ publish: async () => [] }, { consume: () => {} }, {}],
      onEvent: () => {},
      codec,
      maxBodyBytes: 256 * 1024 * 1024,
      logger: false,
      stopTimeoutMs: 0,
    } as const

    expect(resolveOutboxOptions(given)).toMatchObject(given)
  })

  test('a list of middleware that the caller changes afterwards changes nothing', () => {
    const middleware = [{}]
    const settings = resolveOutboxOptions({ middleware })
    middleware.push({})

    expect(settings.middleware).toHaveLength(1)
    expect(Object.isFrozen(settings.middleware)).toBe(true)
  })

  // It may be an instance of a class, whose methods are not its own.
  test('a middleware may be an object of a class, and its wrong methods are found, too', () => {
    class Right {
      async publish(): Promise<never[]> {
        return []
      }
    }
    class Wrong {
      get publish(): string {
        return 'no function'
      }
    }

    expect(resolve({ middleware: [new Right()] })).not.toThrow()
    expect(resolve({ middleware: [new Wrong()] })).toThrow(/expected `publish` to be a function/)
  })

  test('defaults of subscribers are resolved', () => {
    expect(resolveOutboxOptions({ defaults: { concurrency: 3 } }).defaults).toMatchObject({
      concurrency: 3,
      leaseMs: 30_000,
    })
  })

  test.each([
    ['zod', z.number()],
    ['valibot', v.number()],
    ['arktype', type('number')],
    ['a type only', typed<number>()],
  ])('a body may be described by %s', (_title, body) => {
    expect(resolve({ queues: { orders: { body } } })).not.toThrow()
  })

  test.each([
    undefined,
    null,
    'postgres://',
    [],
    { queues: [] },
    { queues: null },
    { queues: { orders: undefined } },
    { queues: { orders: 'x' } },
    { queues: { orders: { body: {} } } },
    { queues: { orders: { body: { '~standard': 1 } } } },
    { queues: { orders: { body: (value: unknown) => value } } },
    { queues: { orders: { codec: {} } } },
    { queues: { orders: { bodi: typed<number>() } } },
    { queues: { '': {} } },
    { queues: { ['x'.repeat(256)]: {} } },
    { queues: { 'a\u0000': {} } },
    { names: 'x' },
    { names: { deed: 'x' } },
    { wake: 'sometimes' },
    { wake: true },
    { generation: -1 },
    { generation: 1.5 },
    { generation: 2 ** 53 },
    { codec: null },
    { codec: 'json' },
    { codec: { ...codec, contentType: 7 } },
    { codec: { ...codec, decode: undefined } },
    { maxBodyBytes: 0 },
    { maxBodyBytes: 256 * 1024 * 1024 + 1 },
    { defaults: [] },
    { defaults: { concurrency: 0 } },
    { defaults: { concurency: 1 } },
    { deadLetters: 'inplace' },
    { delivered: 'in-place' },
    { delivered: true },
    { deadLetters: true },
    { source: '' },
    { source: 7 },
    { source: 'a\u0000' },
    { source: 'é'.repeat(128) },
    { describeError: 'message' },
    { middleware: {} },
    { middleware: () => {} },
    { middleware: [null] },
    { middleware: [() => {}] },
    { middleware: [{ publish: 'yes' }] },
    { middleware: [{ consume: [] }] },
    { middleware: [{}, { publsh: () => {} }] },
    { middleware: new Array(1) },
    { onEvent: {} },
    { onEvent: null },
    { logger: true },
    { logger: 'console' },
    { stopTimeoutMs: -1 },
    { stopTimeoutMs: Number.POSITIVE_INFINITY },
    JSON.parse('{ "__proto__": {} }'),
  ])('refuses what is wrong (case %#)', (options) => {
    expect(resolve(options)).toThrow(invalid)
  })

  test.each([
    ['zod', z.number()],
    ['valibot', v.number()],
    ['arktype', type('number')],
    ['a type only', typed<number>()],
  ])('a schema of %s in place of a queue is answered by how to write it', (_title, schema) => {
    expect(resolve({ queues: { orders: schema } })).toThrow(invalid)
    expect(resolve({ queues: { orders: schema } })).toThrow(
      /^queue "orders" is a schema: write \{ body: schema \}\. /,
    )
  })

  test('a schema whose validate is no function is refused when the outbox is made, not at the first publish', () => {
    expect(resolve({ queues: { orders: { body: { '~standard': { version: 1, validate: 1 } } } } })).toThrow(
      invalid,
    )
  })

  // It is stored as a header: a NUL would fail as jsonb, inside the caller's transaction.
  test.each(['', 'application/\u0000', 'application/\ud83d', 'x'.repeat(256)])(
    'a codec with the content type %j is refused',
    (contentType) => {
      expect(resolve({ codec: { ...codec, contentType } })).toThrow(invalid)
      expect(resolve({ queues: { orders: { codec: { ...codec, contentType } } } })).toThrow(invalid)
    },
  )

  test.each([console, true])('a logger that is none is answered by the default (case %#)', (logger) => {
    expect(resolve({ logger })).toThrow(
      /^expected `logger` to be a function of one entry, or false \(console is the default: leave it out\), got /,
    )
  })

  test('says every problem of every level at once', () => {
    const options = {
      tabel: 'x',
      wake: 'no',
      queues: { orders: { bodi: 1 } },
      names: { deed: 'x' },
      defaults: { leaseMs: 1 },
      middleware: [{}, { publsh: 1, consume: 2 }, null],
    }
    const said = [
      'unknown option `tabel` with value `"x"` (string): did you mean `table`?',
      'expected `wake` to be one of',
      'queue "orders": unknown option `bodi` with value `1` (number): did you mean `body`?',
      'unknown option `names.deed` with value `"x"` (string): did you mean `dead`?',
      'expected `defaults.leaseMs`',
      'middleware[1]: unknown option `publsh` with value `1` (number): did you mean `publish`?',
      'middleware[1]: expected `consume` to be a function, got `2` (number)',
      'middleware[2]: expected it to be an object, got `null`',
    ]

    for (const sentence of said) expect(resolve(options)).toThrow(sentence)
  })
})
