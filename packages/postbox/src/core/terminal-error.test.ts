import { describe, expect, test } from 'vitest'
import { describeError } from './describe-error.ts'
import { OutboxError } from './errors.ts'
import { TerminalError } from './terminal-error.ts'

describe('TerminalError', () => {
  test('carries a message and a cause, and prints its name', () => {
    const cause = new Error('unknown country')
    const error = new TerminalError('cannot be shipped', { cause })

    expect(error).toBeInstanceOf(Error)
    expect(error.cause).toBe(cause)
    expect(describeError(error)).toBe('TerminalError: cannot be shipped ← Error: unknown country')
  })

  test('is() tells it, a class made of it, and one of another copy of the package', () => {
    class OrderRefused extends TerminalError {
      override readonly name = 'OrderRefused'
    }

    expect(TerminalError.is(new TerminalError('no'))).toBe(true)
    expect(TerminalError.is(new OrderRefused('no'))).toBe(true)
    expect(TerminalError.is({ [Symbol.for('postbox.terminal')]: true })).toBe(true)
  })

  test.each([
    null,
    undefined,
    'TerminalError',
    {},
    new Error('x'),
    new OutboxError('OUTBOX_NO_DATABASE', 'none'),
  ])('is() refuses what is none (case %#)', (value) => {
    expect(TerminalError.is(value)).toBe(false)
  })

  test('is() survives what throws when it is asked', () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()

    expect(TerminalError.is(proxy)).toBe(false)
  })

  test('is no misuse of the outbox', () => {
    expect(OutboxError.is(new TerminalError('no'))).toBe(false)
  })
})
