import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { describeError } from './describe-error.ts'
import { byteLength, textProblem } from './text.ts'

const limitBytes = 8_192

class HostileError extends Error {
  override get message(): string {
    throw new Error('do not touch')
  }
}

class HostileCause extends Error {
  override get cause(): unknown {
    throw new Error('do not touch')
  }
}

function deepChain(depth: number): Error {
  return new Error(`level ${depth}`, depth === 0 ? {} : { cause: deepChain(depth - 1) })
}

function selfCaused(): Error {
  const error = new Error('ouroboros')
  error.cause = error
  return error
}

describe('describeError', () => {
  test.each([
    [new TypeError('bad order'), 'TypeError: bad order'],
    [new Error('outer', { cause: new RangeError('inner') }), 'Error: outer ← RangeError: inner'],
    [new Error('outer', { cause: 'text' }), 'Error: outer ← text'],
    ['thrown text', 'thrown text'],
    [42, '42'],
    [null, 'null'],
    [Symbol('odd'), 'Symbol(odd)'],
    [new Error(''), 'Error'],
    [new HostileCause('outer'), 'Error: outer'],
    [Object.create(null), 'an error that cannot be printed'],
    [new HostileError(), 'an error that cannot be printed'],
    [{ toString: () => ({}) }, 'an error that cannot be printed'],
  ])('prints name, message and causes (case %#)', (error, text) => {
    expect(describeError(error)).toBe(text)
  })

  test('a rejection without a reason is told from an empty text', () => {
    expect(describeError(undefined)).toBe('undefined')
  })

  test('five causes deep is enough, also for an error that caused itself', () => {
    expect(describeError(deepChain(9)).split(' ← ')).toHaveLength(5)
    expect(describeError(selfCaused()).split(' ← ')).toHaveLength(5)
  })

  test('a NUL and half an emoji are replaced, a whole emoji is kept', () => {
    expect(describeError(new Error('a\u0000b\ud83dc\ude00d😀'))).toBe('Error: a\ufffdb\ufffdc\ufffdd😀')
  })

  test('8,192 characters are kept as they are, one more is cut', () => {
    expect(describeError('x'.repeat(8_192))).toBe('x'.repeat(8_192))
    expect(describeError('x'.repeat(8_193))).toMatch(/^x+…$/)
  })

  test('an emoji that the cut goes through leaves no half behind', () => {
    expect(textProblem(describeError(`${'x'.repeat(8_190)}😀😀`))).toBeNull()
  })

  test.each(['x', 'é', '€', '😀'])('a long text of %s is at most 8 KiB of bytes', (unit) => {
    expect(byteLength(describeError(new Error(unit.repeat(20_000))))).toBeLessThanOrEqual(limitBytes)
  })

  test('whatever was thrown, its description can be stored', () => {
    const units = fc.array(fc.integer({ min: 0, max: 0xffff })).map((codes) => String.fromCharCode(...codes))
    const thrown = fc.oneof(
      fc.anything(),
      units,
      fc.tuple(units, units).map(([a, b]) => new Error(a, { cause: new Error(b) })),
    )

    fc.assert(
      fc.property(thrown, (error) => {
        expect(textProblem(describeError(error))).toBeNull()
      }),
    )
  })
})
