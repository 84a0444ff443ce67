import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { describeError, describerOf } from './describe-error.ts'
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

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable(new Error('gone'), {})
  revoke()
  return proxy
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
    [new Error('outer', { cause: null }), 'Error: outer'],
    [new AggregateError([new Error('first'), new Error('second')]), 'AggregateError ← Error: first'],
    [new AggregateError([], 'none'), 'AggregateError: none'],
    [new AggregateError([new Error('one')], 'all', { cause: 'why' }), 'AggregateError: all ← why'],
    [new HostileCause('outer'), 'Error: outer'],
    [Object.create(null), 'an error that cannot be printed'],
    [new HostileError(), 'an error that cannot be printed'],
    [{ toString: () => ({}) }, 'an error that cannot be printed'],
  ])('prints name, message and causes (case %#)', (error, text) => {
    expect(describeError(error)).toBe(text)
  })

  test('a revoked proxy is survived, also as a cause', () => {
    expect(describeError(revoked())).toBe('an error that cannot be printed')
    expect(describeError(new Error('outer', { cause: revoked() }))).toBe(
      'Error: outer ← an error that cannot be printed',
    )
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

  test('a long text is cut to 8 KiB exactly, and ends in an ellipsis (U-DLQ-04)', () => {
    const text = describeError(new Error('x'.repeat(10_000_000)))

    expect(byteLength(text)).toBe(limitBytes)
    expect(text).toMatch(/^Error: x+…$/)
  })

  test('a cause is cut like its error, and a short one is kept behind it', () => {
    expect(describeError(new Error('outer', { cause: new Error('y'.repeat(20_000)) }))).toMatch(
      /^Error: outer ← Error: y+…$/,
    )
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

describe('describerOf', () => {
  const fixed = 'an error that describeError could not describe'

  test('without a describer of the user’s it is describeError', () => {
    expect(describerOf(undefined)(new TypeError('bad'))).toEqual({ text: 'TypeError: bad' })
  })

  test('stores what the describer says, made storable and cut (U-DLQ-04)', () => {
    expect(describerOf((error) => `code ${(error as { code: string }).code}`)({ code: '7' })).toEqual({
      text: 'code 7',
    })
    expect(describerOf(() => 'a\u0000b\ud83d')(null)).toEqual({ text: 'a\ufffdb\ufffd' })
    expect(byteLength(describerOf(() => '€'.repeat(5_000_000))(null).text ?? '')).toBeLessThanOrEqual(
      limitBytes,
    )
    expect(describerOf(() => '')(null)).toEqual({ text: '' })
  })

  test('stores nothing when the describer says null', () => {
    expect(describerOf(() => null)(new Error('secret'))).toEqual({ text: null })
  })

  test('a describer that throws stores a fixed text, and never what it was to redact', () => {
    const describe = describerOf(() => {
      throw new RangeError('no words')
    })
    const { text, trouble } = describe(new Error('secret'))

    expect(text).toBe(fixed)
    expect(trouble).toMatchObject({ code: 'OUTBOX_INVALID_POLICY', cause: new RangeError('no words') })
    expect(trouble?.message).toMatch(/^`describeError` threw `"RangeError: no words"` \(string\)\. /)
  })

  test.each([undefined, 7, new Error('secret'), { secret: 1 }, ['secret']])(
    'a describer that returns something else stores a fixed text, and tells only its type (case %#)',
    (answer) => {
      const { text, trouble } = describerOf(() => answer as never)(new Error('secret'))

      expect(text).toBe(fixed)
      expect(trouble).toMatchObject({ code: 'OUTBOX_INVALID_POLICY' })
      expect(trouble?.message).toContain(`got a value of type ${typeof answer}`)
      expect(trouble?.message).not.toContain('secret')
    },
  )

  // Vitest fails a run with an unhandled rejection.
  test('the rejection of an async describer ends nothing', async () => {
    const { text } = describerOf(() => Promise.reject(new Error('late')) as never)(new Error('secret'))

    expect(text).toBe(fixed)
    await new Promise((resolve) => setImmediate(resolve))
  })

  test('whatever a describer throws or returns, the answer can be stored', () => {
    fc.assert(
      fc.property(fc.anything(), fc.boolean(), (value, isThrown) => {
        const { text } = describerOf(() => {
          if (isThrown) throw value
          return value as never
        })(new Error('secret'))

        expect(text === null || textProblem(text) === null).toBe(true)
      }),
    )
  })
})
