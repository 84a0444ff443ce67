import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { OutboxError } from './errors.ts'
import {
  assertOptions,
  assertValue,
  callable,
  expected,
  isRecord,
  name,
  oneOf,
  optionProblems,
  orNull,
  wholeNumber,
} from './validate.ts'

// Any UTF-16 unit, halves of pairs included. Not `unit: 'binary'`, which takes seconds to set up.
const anyUnit = fc.nat(0xffff).map((code) => String.fromCharCode(code))

const shape = { concurrency: wholeNumber(1, 100), key: name(8) }

describe('optionProblems', () => {
  test('options that are right have no problem, and undefined counts as absent', () => {
    expect(optionProblems({ concurrency: 1, key: undefined }, shape, 'the options')).toEqual([])
    expect(optionProblems({}, shape, 'the options')).toEqual([])
  })

  test('every problem is reported, in the order given', () => {
    expect(optionProblems({ key: '', concurrency: 0, colour: 'red' }, shape, 'the options')).toEqual([
      'expected `key` to be a non-empty string, got `""` (string)',
      'expected `concurrency` to be a whole number from 1 to 100, got `0` (number)',
      'unknown option `colour` with value `"red"` (string) (known: concurrency, key)',
    ])
  })

  test('a misspelt option is answered by the one that was meant', () => {
    expect(optionProblems({ concurency: 5 }, shape, 'the options')).toEqual([
      'unknown option `concurency` with value `5` (number): did you mean `concurrency`?',
    ])
  })

  test('null is a value, not an absent option', () => {
    expect(optionProblems({ key: null }, shape, 'the options')).toEqual([
      'expected `key` to be a non-empty string, got `null`',
    ])
  })

  test.each([null, 'text', 7, [], true, () => {}])('%j is no options object', (given) => {
    expect(optionProblems(given, shape, 'the options')).toHaveLength(1)
  })

  test('options of an option are named with it, also the whole of them', () => {
    const within = { within: 'defaults' }

    expect(optionProblems({ key: '', concurency: 5, colour: 1 }, shape, within)).toEqual([
      'expected `defaults.key` to be a non-empty string, got `""` (string)',
      'unknown option `defaults.concurency` with value `5` (number): did you mean `concurrency`?',
      'unknown option `defaults.colour` with value `1` (number) (known: concurrency, key)',
    ])
    expect(optionProblems(5, shape, within)).toEqual([
      'expected `defaults` to be an object, got `5` (number)',
    ])
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    '%s is an unknown option like any other',
    (key) => {
      const given: unknown = JSON.parse(`{ "${key}": 1 }`)

      expect(optionProblems(given, shape, 'the options')).toEqual([expect.stringMatching(/^unknown option/)])
    },
  )

  test('an option that lies on the prototype is checked like an own one', () => {
    class Options {
      get key(): string {
        return '\u0000'
      }
    }

    expect(optionProblems(new Options(), shape, 'the options')).toHaveLength(1)
  })
})

describe('assertOptions', () => {
  test('says everything in one error', () => {
    const act = (): void => assertOptions({ key: '', concurrency: 0 }, shape, 'the options')

    expect(act).toThrow(expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' }))
    expect(act).toThrow(/expected `key` .*; expected `concurrency` /)
  })

  test('absent options are fine, null is not', () => {
    expect(() => assertOptions(undefined, shape, 'the options')).not.toThrow()
    expect(() => assertOptions(null, shape, 'the options')).toThrow(
      'expected the options to be an object, got `null`',
    )
  })
})

describe('wholeNumber', () => {
  test.each([1, 10, 5])('1 to 10 has %d', (value) => {
    expect(wholeNumber(1, 10)(value)).toBeNull()
  })

  test.each([
    0,
    11,
    1.5,
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '5',
    5n,
    null,
    undefined,
    [5],
    new Number(5),
  ])('1 to 10 has not %s (case %#)', (value) => {
    expect(wholeNumber(1, 10)(value)).toBe('to be a whole number from 1 to 10')
  })

  test('the default limit is the largest number that is exact', () => {
    expect(wholeNumber(0)(Number.MAX_SAFE_INTEGER)).toBeNull()
    expect(wholeNumber(0)(Number.MAX_SAFE_INTEGER + 1)).not.toBeNull()
  })
})

describe('name', () => {
  test.each([
    ['ÄÖÜ', 6],
    ['😀', 4],
    ['x'.repeat(255), 255],
  ])('%s is accepted by a limit of its %i bytes and refused by one byte less', (text, bytes) => {
    expect(name(bytes)(text)).toBeNull()
    expect(name(bytes - 1)(text)).toBe(`to be at most ${bytes - 1} bytes long`)
  })

  test.each([['', 7, null, undefined, {}, ['a'], new String('a')]].flat())('%j is no name', (value) => {
    expect(name(10)(value)).toBe('to be a non-empty string')
  })

  test('text that Postgres would refuse or alter is no name', () => {
    expect(name(10)('a\u0000')).toBe('to be storable text, but it contains a NUL character')
    expect(name(10)('a\ud83d')).toMatch(/unpaired surrogate/)
  })

  test('whatever is accepted comes back from UTF-8 as it was and fits', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: anyUnit, maxLength: 12 }),
        fc.integer({ min: 1, max: 20 }),
        (text, most) => {
          fc.pre(name(most)(text) === null)
          const bytes = Buffer.from(text, 'utf8')

          expect(bytes.byteLength).toBeLessThanOrEqual(most)
          expect(bytes.toString('utf8')).toBe(text)
        },
      ),
    )
  })
})

describe('the small checks', () => {
  test('oneOf lists what is allowed', () => {
    expect(oneOf('keep', 'replace')('keep')).toBeNull()
    expect(oneOf('keep', 'replace')('KEEP')).toBe("to be one of 'keep', 'replace'")
    expect(oneOf('keep', 'replace')(['keep'])).not.toBeNull()
  })

  test('orNull takes null, too, and says so', () => {
    expect(orNull(callable)(null)).toBeNull()
    expect(orNull(callable)(() => {})).toBeNull()
    expect(orNull(callable)(undefined)).toBe('to be a function, or null')
  })

  test('callable takes functions and classes only', () => {
    expect(callable(() => {})).toBeNull()
    expect(callable({ call: () => {} })).toBe('to be a function')
  })

  test.each([
    [{}, true],
    [Object.create(null), true],
    [[], false],
    [null, false],
    ['text', false],
    [() => {}, false],
  ])('isRecord (case %#)', (value, answer) => {
    expect(isRecord(value)).toBe(answer)
  })

  test('expected has one grammar', () => {
    expect(expected('x', 'to be y', 1)).toBe('expected `x` to be y, got `1` (number)')
  })

  test('assertValue throws with the code it was given, or not at all', () => {
    const act = (value: unknown) => () =>
      assertValue('OUTBOX_INVALID_QUEUE', { label: 'queue', check: name(3), value })

    expect(act('abc')).not.toThrow()
    expect(act('abcd')).toThrow(OutboxError)
    expect(act('abcd')).toThrow(expect.objectContaining({ code: 'OUTBOX_INVALID_QUEUE' }))
  })
})
