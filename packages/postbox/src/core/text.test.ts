import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { byteLength, hasLoneSurrogate, textProblem } from './text.ts'

/** Any sequence of UTF-16 units: halves of emoji and NUL included. */
const units = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0xd800, max: 0xdfff })), {
    maxLength: 12,
  })
  .map((codes) => String.fromCharCode(...codes))

describe('text', () => {
  test.each([
    ['', 0],
    ['a', 1],
    ['é', 2],
    ['€', 3],
    ['😀', 4],
    ['e\u0301', 3],
    ['\u0000', 1],
  ])('%j takes %i bytes', (text, bytes) => {
    expect(byteLength(text)).toBe(bytes)
  })

  test.each([
    ['\ud83d', true],
    ['\ude00', true],
    ['a\ud83d', true],
    ['\ud83da', true],
    ['\ud83d\ud83d\ude00', true],
    ['😀\ude00', true],
    ['\ude00\ud83d', true],
    ['\udbff\udfff', false],
    ['\ud800\udc00', false],
    ['\ud7ff\ue000', false],
    ['😀😀', false],
    ['', false],
  ])('%j has half an emoji: %s', (text, expected) => {
    expect(hasLoneSurrogate(text)).toBe(expected)
  })

  test('half an emoji is found exactly where UTF-8 would change the text', () => {
    fc.assert(
      fc.property(units, (text) => {
        expect(hasLoneSurrogate(text)).toBe(Buffer.from(text, 'utf8').toString('utf8') !== text)
      }),
      { numRuns: 500 },
    )
  })

  test('text without a problem has no NUL and survives UTF-8', () => {
    fc.assert(
      fc.property(units, (text) => {
        const storable = !text.includes('\u0000') && Buffer.from(text, 'utf8').toString('utf8') === text

        expect(textProblem(text) === null).toBe(storable)
      }),
      { numRuns: 500 },
    )
  })

  test('the problem says which of the two it is', () => {
    expect(textProblem('a\u0000b')).toBe('contains a NUL character')
    expect(textProblem('a\ud83db')).toBe('contains an unpaired surrogate (half an emoji)')
    expect(textProblem('')).toBeNull()
  })
})
