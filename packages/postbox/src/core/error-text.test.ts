import { describe, expect, test } from 'vitest'
import { describeError } from './describe-error.ts'
import { errorText } from './error-text.ts'

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable(new Error('gone'), {})
  revoke()
  return proxy
}

function endless(): Error {
  const error = new Error('x'.repeat(10_000_000))
  error.cause = error
  return error
}

describe('errorText', () => {
  test.each([
    [new TypeError('bad order'), 'TypeError: bad order'],
    [new Error('outer', { cause: new RangeError('inner') }), 'Error: outer ← RangeError: inner'],
    [new AggregateError([new Error('refused')]), 'AggregateError ← Error: refused'],
    ['text', 'text'],
    [undefined, 'undefined'],
  ])('prints the error and its causes (case %#)', (error, text) => {
    expect(errorText(error)).toBe(text)
  })

  test('survives an error that throws when it is touched', () => {
    expect(errorText(revoked())).toBe('an error that cannot be printed')
  })

  test('is no longer than a row stores, but for the one character that tells that it was cut', () => {
    expect(errorText(endless())).toHaveLength(8_193)
    expect(describeError(endless())).toMatch(/…$/)
  })
})
