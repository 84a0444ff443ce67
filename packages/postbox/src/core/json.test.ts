import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toJson } from './json.ts'

const circular: Record<string, unknown> = { name: 'loop' }
circular['self'] = [circular]

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** A value that holds whatever JSON alters. -0 apart: JSON has no such number, and nobody would call 0 a loss. */
const anything = fc.anything({
  withBigInt: true,
  withDate: true,
  withMap: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
  withNullPrototype: true,
  withUnicodeString: true,
})

describe('toJson', () => {
  test.each([
    [{ orderId: 1 }, '{"orderId":1}'],
    [[], '[]'],
    [true, 'true'],
    ['text', '"text"'],
    [null, 'null'],
    [{ a: undefined, b: 1 }, '{"b":1}'],
    [Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    [{ toJSON: () => ({ a: 1 }) }, '{"a":1}'],
    [new URL('https://example.org/a'), '"https://example.org/a"'],
    [{ half: '\ud83d', nul: '\u0000' }, '{"half":"\\ud83d","nul":"\\u0000"}'],
    [-0, '0'],
    [Number.MAX_VALUE, '1.7976931348623157e+308'],
  ])('writes what JSON can hold (case %#)', (value, text) => {
    expect(toJson(value, 'refuse')).toEqual({ ok: true, text })
  })

  test.each([
    [undefined, 'body', /^is undefined/],
    [{ a: [1, undefined] }, 'body.a[1]', /^is undefined/],
    // biome-ignore lint/suspicious/noSparseArray: the hole is what is tested
    [[1, , 3], 'body[1]', /^is undefined/],
    [new Array(4_294_967_295), 'body[0]', /^is undefined/],
    [{ total: 1n }, 'body.total', /bigint/],
    [{ a: { b: Number.NaN } }, 'body.a.b', /^is NaN/],
    [[Number.NEGATIVE_INFINITY], 'body[0]', /^is -Infinity/],
    [{ run: () => {} }, 'body.run', /^is a function/],
    [Symbol('x'), 'body', /^is a symbol/],
    [circular, 'body.self[0]', /circular/],
    [{ a: Promise.resolve(1) }, 'body.a', /await is missing/],
    [{ at: new Date(Number.NaN) }, 'body.at', /invalid Date/],
    [{ toJSON: () => ({ a: 1n }) }, 'body.a', /bigint/],
    [{ toJSON: () => undefined }, 'body', /undefined/],
  ])(
    'refuses what JSON loses, with its path, whether or not there is a schema (case %#)',
    (value, path, problem) => {
      for (const lossy of ['refuse', 'allow'] as const) {
        expect(toJson(value, lossy)).toEqual({ ok: false, path, problem: expect.stringMatching(problem) })
      }
    },
  )

  test.each([
    [new Date(0), /^is a Date/],
    [new Map([[1, 2]]), /^is of type Map, which JSON would lose$/],
    [new Set([1]), /^is of type Set, which JSON would lose$/],
    [/a/g, /^is of type RegExp, which JSON would lose$/],
    [new TypeError('x'), /^is of type Error, which JSON would lose$/],
    [Buffer.from('x'), /^is binary/],
    [new Float64Array(1), /^is binary/],
    [new ArrayBuffer(1), /^is binary/],
    [new DataView(new ArrayBuffer(1)), /^is binary/],
  ])('leaves to a schema what JSON alters, and refuses it without one (case %#)', (value, problem) => {
    expect(toJson({ deep: [value] }, 'refuse')).toEqual({
      ok: false,
      path: 'body.deep[0]',
      problem: expect.stringMatching(problem),
    })
    expect(toJson({ deep: [value] }, 'allow')).toEqual({ ok: true, text: JSON.stringify({ deep: [value] }) })
  })

  test.each([
    ['a boxed NaN, which becomes null', Object(Number.NaN), 'Number'],
    ['a WeakMap', new WeakMap(), 'WeakMap'],
    ['URLSearchParams', new URLSearchParams('a=1'), 'URLSearchParams'],
    ['shared memory', new SharedArrayBuffer(4), 'SharedArrayBuffer'],
  ])('refuses %s, and says of what type it is', (_title, value, type) => {
    expect(toJson({ value }, 'refuse')).toEqual({
      ok: false,
      path: 'body.value',
      problem: `is of type ${type}, which JSON would lose`,
    })
  })

  test('an object that is there twice, without a circle, is written twice', () => {
    const address = { city: 'Bern' }

    expect(toJson({ from: address, to: address }, 'refuse')).toEqual({
      ok: true,
      text: '{"from":{"city":"Bern"},"to":{"city":"Bern"}}',
    })
  })

  test('a toJSON that returns its own object is written as JSON.stringify does', () => {
    class Order {
      readonly total = 7
      toJSON(): this {
        return this
      }
    }

    expect(toJson(new Order(), 'refuse')).toEqual({ ok: true, text: '{"total":7}' })
  })

  test('a toJSON that changes its mind does not get undefined through', () => {
    let calls = 0
    const fickle = { toJSON: () => (calls++ === 0 ? 1 : undefined) }

    expect(toJson(fickle, 'refuse')).toEqual({
      ok: false,
      path: 'body',
      problem: 'is undefined after toJSON()',
    })
  })

  test.each([
    [
      'a getter',
      {
        get total(): number {
          throw new Error('not loaded')
        },
      },
    ],
    ['a revoked proxy', revokedProxy()],
  ])('%s that throws when it is read is a problem, not an exception', (_title, value) => {
    expect(toJson(value, 'refuse')).toEqual({
      ok: false,
      path: 'body',
      problem: expect.stringMatching(/^cannot be read/),
    })
  })

  test('a getter that throws what cannot be printed is a problem, not an exception', () => {
    const value = Object.defineProperty({}, 'total', {
      enumerable: true,
      get: () => {
        throw Object.create(null)
      },
    })

    expect(toJson(value, 'refuse').ok).toBe(false)
  })

  test('nesting that is too deep for the stack is a problem, not an exception', () => {
    let deep: unknown[] = []
    for (let level = 0; level < 100_000; level++) deep = [deep]

    expect(toJson(deep, 'refuse').ok).toBe(false)
  })

  test('keys such as __proto__ are carried, not applied', () => {
    const result = toJson(JSON.parse('{"__proto__":{"admin":true},"constructor":1}'), 'refuse')

    expect(result).toEqual({ ok: true, text: '{"__proto__":{"admin":true},"constructor":1}' })
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined()
  })

  test('every JSON value is accepted as it is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(toJson(value, 'refuse')).toEqual({ ok: true, text: JSON.stringify(value) })
      }),
    )
  })

  test('what is accepted without a schema comes back deeply equal, absent members apart', () => {
    fc.assert(
      fc.property(anything, (value) => {
        const result = toJson(value, 'refuse')
        fc.pre(result.ok)
        expect(JSON.parse(result.ok ? result.text : '')).toEqual(withoutNegativeZero(value))
      }),
      { numRuns: 1_000 },
    )
  })
})

function withoutNegativeZero(value: unknown): unknown {
  if (Object.is(value, -0)) return 0
  if (Array.isArray(value)) return value.map(withoutNegativeZero)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withoutNegativeZero(member)]))
}
