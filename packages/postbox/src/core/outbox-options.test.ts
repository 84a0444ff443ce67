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
      generation: null,
      codec: undefined,
      maxBodyBytes: 1_048_576,
      logger: undefined,
      stopTimeoutMs: 15_000,
      defaults: { concurrency: 10 },
    })
    expect(Object.isFrozen(settings)).toBe(true)
  })

  test('keeps what was given', () => {
    const given = {
      queues: { orders: { body: typed<number>(), codec } },
      schema: 'a',
      table: 'b',
      names: { dead: 'c' },
      wake: 'poll',
      generation: 0,
      codec,
      maxBodyBytes: 256 * 1024 * 1024,
      logger: false,
      stopTimeoutMs: 0,
    } as const

    expect(resolveOutboxOptions(given)).toMatchObject(given)
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

  test('says every problem of every level at once', () => {
    const options = {
      tabel: 'x',
      wake: 'no',
      queues: { orders: { bodi: 1 } },
      names: { deed: 'x' },
      defaults: { leaseMs: 1 },
    }
    const said = [
      'unknown option `tabel` with value `"x"` (string): did you mean `table`?',
      'expected `wake` to be one of',
      'queue "orders": unknown option `bodi` with value `1` (number): did you mean `body`?',
      'unknown option `deed`',
      'expected `leaseMs`',
    ]

    for (const sentence of said) expect(resolve(options)).toThrow(sentence)
  })
})
