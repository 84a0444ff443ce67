import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { headersToStore, readHeaders, takeOwn } from './headers.ts'
import { textProblem } from './text.ts'

// Any UTF-16 unit, halves of pairs included. Not `unit: 'binary'`, which takes seconds to set up.
const anyUnit = fc.nat(0xffff).map((code) => String.fromCharCode(code))

const invalidHeaders = expect.objectContaining({ code: 'OUTBOX_INVALID_HEADERS' })

describe('readHeaders', () => {
  test('no headers are no headers', () => {
    expect([...readHeaders(undefined)]).toEqual([])
    expect([...readHeaders({})]).toEqual([])
  })

  test('names keep their case, except those of the envelope', () => {
    const read = readHeaders({ 'X-Tenant': 'a', 'Content-Type': 'b', 'CORRELATION-ID': 'c' })

    expect([...read]).toEqual([
      ['X-Tenant', 'a'],
      ['content-type', 'b'],
      ['correlation-id', 'c'],
    ])
  })

  test('a header called __proto__ is a header', () => {
    const read = readHeaders(JSON.parse('{ "__proto__": "x", "constructor": "y" }'))

    expect(JSON.stringify(headersToStore(read, 1_000))).toBe('{"__proto__":"x","constructor":"y"}')
  })

  test('an empty value is a value', () => {
    expect(readHeaders({ note: '' }).get('note')).toBe('')
  })

  test.each([
    null,
    'a: b',
    7,
    [['a', 'b']],
    new Map([['a', 'b']]),
    { a: 1 },
    { a: undefined },
    { a: null },
    { a: ['b'] },
    { '': 'b' },
    { a: 'b\u0000' },
    { 'a\u0000': 'b' },
    { a: '\ud83d' },
    { '\ude00': 'b' },
  ])('are refused when they are not a plain object of storable strings (case %#)', (headers) => {
    expect(() => readHeaders(headers)).toThrow(invalidHeaders)
  })

  test.each([
    ['Headers', new Headers({ 'x-tenant': 'a' })],
    ['URLSearchParams', new URLSearchParams('tenant=a')],
    ['Set', new Set(['a'])],
  ])(
    'an object of class %s is refused: read as a plain one, it would lose every header',
    (_title, headers) => {
      expect(() => readHeaders(headers)).toThrow(invalidHeaders)
    },
  )

  test('one envelope header in two spellings with two values is a contradiction', () => {
    expect(() => readHeaders({ 'Content-Type': 'text/plain', 'content-type': 'text/html' })).toThrow(
      invalidHeaders,
    )
  })

  test('one envelope header in two spellings with one value is accepted', () => {
    expect([...readHeaders({ 'Correlation-Id': 'c', 'correlation-id': 'c' })]).toEqual([
      ['correlation-id', 'c'],
    ])
  })

  test('whatever is accepted can be stored and comes back', () => {
    const text = fc.string({ unit: anyUnit, maxLength: 8 })

    fc.assert(
      fc.property(fc.dictionary(text, text), (headers) => {
        const wrong =
          Object.entries(headers)
            .flat()
            .some((part) => textProblem(part) !== null) || '' in headers
        if (wrong) {
          expect(() => readHeaders(headers)).toThrow(invalidHeaders)
          return
        }
        const stored = headersToStore(readHeaders(headers), 1_000_000)
        expect(JSON.parse(JSON.stringify(stored ?? {}))).toEqual({ ...headers })
      }),
    )
  })
})

describe('takeOwn', () => {
  test.each([
    [{}, undefined, undefined],
    [{ 'correlation-id': 'c' }, undefined, 'c'],
    [{}, 'c', 'c'],
    [{ 'correlation-id': 'c' }, 'c', 'c'],
  ])('gives header or option (case %#)', (headers, option, taken) => {
    const read = readHeaders(headers)

    expect(takeOwn(read, 'correlation-id', option)).toBe(taken)
    expect(read.has('correlation-id')).toBe(false)
  })

  // U-ENC-06
  test('a header and an option that differ are refused, with both values', () => {
    const act = (): unknown => takeOwn(readHeaders({ 'correlation-id': 'a' }), 'correlation-id', 'b')

    expect(act).toThrow(invalidHeaders)
    expect(act).toThrow('header `correlation-id` is `"a"` (string), but the option says `"b"` (string)')
  })
})

describe('headersToStore', () => {
  test('nothing to say is null', () => {
    expect(headersToStore(new Map(), 10)).toBeNull()
  })

  test('the limit is in bytes of JSON, inclusive', () => {
    const read = new Map([['a', 'é']])

    expect(headersToStore(read, 10)).toEqual({ a: 'é' })
    expect(() => headersToStore(read, 9)).toThrow(
      'expected `headers` to be at most 9 bytes as JSON, got 10 bytes',
    )
  })
})
