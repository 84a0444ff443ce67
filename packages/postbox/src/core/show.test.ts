import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { outline, show } from './show.ts'
import { hasLoneSurrogate } from './text.ts'

class Order {
  readonly total = 7
}

const circular: Record<string, unknown> = {}
circular['self'] = circular

const thrower = new Proxy(
  {},
  {
    get: () => {
      throw new Error('do not touch')
    },
  },
)

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

describe('show', () => {
  test.each([
    ['orders', '`"orders"` (string)'],
    ['a\nb\u0000', '`"a\\nb\\u0000"` (string)'],
    ['\ud83d', '`"\\ud83d"` (string)'],
    [0, '`0` (number)'],
    [Number.NaN, '`NaN` (number)'],
    [7n, '`7n` (bigint)'],
    [true, '`true` (boolean)'],
    [Symbol('id'), '`Symbol(id)` (symbol)'],
    [[1, 2n], '`[1,"2n"]` (array)'],
    [{ a: 1 }, '`{"a":1}` (object)'],
    [new Date(0), '`1970-01-01T00:00:00.000Z` (object)'],
    [new Date(Number.NaN), '`Invalid Date` (object)'],
    [new Order(), '`Order` (object)'],
    [new Map(), '`Map` (object)'],
    [Object.create(null), '`object` (object)'],
    [function ship() {}, '`ship` (function)'],
    [() => {}, '`function` (function)'],
    [{ toJSON: () => undefined }, '`object` (object)'],
    [circular, '`unprintable` (object)'],
    [thrower, '`unprintable` (object)'],
  ])('prints a value and its kind (case %#)', (value, text) => {
    expect(show(value)).toBe(text)
  })

  test.each([
    [undefined, '`undefined`'],
    [null, '`null`'],
  ])('prints no kind that only repeats the value (case %#)', (value, text) => {
    expect(show(value)).toBe(text)
  })

  test('a long text is cut at 120 characters', () => {
    expect(show('x'.repeat(118))).toBe(`\`"${'x'.repeat(118)}"\` (string)`)
    expect(show('x'.repeat(500))).toBe(`\`"${'x'.repeat(119)}…\` (string)`)
  })

  test('cutting never leaves half an emoji behind', () => {
    const text = show(`${'x'.repeat(118)}😀${'x'.repeat(50)}`)

    expect(hasLoneSurrogate(text)).toBe(false)
  })

  test('whatever a value is made of, showing it does not throw', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }),
        (value) => {
          expect(typeof show(value)).toBe('string')
        },
      ),
    )
  })

  test.each([
    ['a revoked proxy', revoked()],
    ['parsed JSON whose constructor has a number for a name', JSON.parse('{"constructor":{"name":42}}')],
    ['a function whose name is a number', Object.defineProperty(() => {}, 'name', { value: 42 })],
    ['an object without a usable constructor', Object.assign(Object.create(null), { constructor: 7 })],
  ])('does not throw on %s', (_title, value) => {
    expect(() => show(value)).not.toThrow()
  })
})

test.each([
  [null, 'null'],
  ['postgres://app:hunter2@db.internal/app', 'a string'],
  [7, 'a number'],
  [() => 'hunter2', 'a function'],
  [{}, 'an object with no members'],
  [{ host: 'db.internal', password: 'hunter2' }, 'an object with host, password'],
  [Object.assign(Object.create(null), { password: 'hunter2' }), 'an object with password'],
  [new Map([['password', 'hunter2']]), 'a Map'],
])('an outline has kinds and names, and no values (case %#)', (given, expected) => {
  expect(outline(given)).toBe(expected)
})
