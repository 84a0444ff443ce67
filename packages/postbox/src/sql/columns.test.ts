import { describe, expect, test } from 'vitest'
import { bytesFrom, dateFrom, headersFrom, numberFrom } from './columns.ts'

describe('columns', () => {
  test('no headers are an empty object', () => {
    expect(headersFrom(null)).toEqual({})
  })

  test.each(['null', '[]', '["a"]', '7', '"text"', 'true'])(
    'headers that a foreign writer stored as %s are an empty object',
    (text) => {
      expect(headersFrom(text)).toStrictEqual({})
    },
  )

  test.each([null, 'null', '{"a": "b"}'])('headers cannot be changed (%s)', (text) => {
    expect(Object.isFrozen(headersFrom(text))).toBe(true)
  })

  test('headers are parsed from text, __proto__ as a member', () => {
    expect(headersFrom('{"a": "b"}')).toEqual({ a: 'b' })
    expect(Object.keys(headersFrom('{"__proto__": "x"}'))).toEqual(['__proto__'])
  })

  test.each([
    ['1700000000123', 1_700_000_000_123],
    ['1700000000123.456000', 1_700_000_000_123],
    ['-1', -1],
    ['0', 0],
  ])('%s milliseconds are a date', (text, epochMs) => {
    expect(dateFrom(text).getTime()).toBe(epochMs)
  })

  test('bytes come back from base64, with the line breaks that Postgres puts after 76 characters', () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const lines = bytes.toString('base64').replaceAll(/.{76}/g, (line) => `${line}\n`)

    expect(bytesFrom(lines)).toEqual(bytes)
    expect(bytesFrom('')).toHaveLength(0)
  })

  test('a bigint is a number, null stays null', () => {
    expect([numberFrom('9007199254740991'), numberFrom('0'), numberFrom(null)]).toEqual([
      9_007_199_254_740_991,
      0,
      null,
    ])
  })
})
