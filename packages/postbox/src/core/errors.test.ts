import { describe, expect, test } from 'vitest'
import { errorCatalogue } from './error-catalogue.ts'
import { LeaseLostError, OutboxError } from './errors.ts'
import { runtimeErrorCatalogue } from './runtime-error-catalogue.ts'
import { runtimeError } from './runtime-errors.ts'

describe('OutboxError', () => {
  test('carries code, sentence, hint, docs and cause', () => {
    const cause = new Error('deeper')
    const error = new OutboxError('OUTBOX_NO_DATABASE', 'this outbox has none', { cause })

    expect(error).toBeInstanceOf(Error)
    expect(error.name).toBe('OutboxError')
    expect(error.code).toBe('OUTBOX_NO_DATABASE')
    expect(error.hint).toBe(errorCatalogue.OUTBOX_NO_DATABASE)
    expect(error.docs).toBe('docs/reference/errors.md#outbox_no_database')
    expect(error.message).toBe(`this outbox has none. ${errorCatalogue.OUTBOX_NO_DATABASE}`)
    expect(error.cause).toBe(cause)
  })

  test.each(['did you mean "orders"?', 'Enough.', 'No!'])(
    'does not put a full stop behind %j',
    (sentence) => {
      const error = new OutboxError('OUTBOX_UNKNOWN_QUEUE', sentence)

      expect(error.message).toBe(`${sentence} ${errorCatalogue.OUTBOX_UNKNOWN_QUEUE}`)
    },
  )

  test('has no cause when none was given', () => {
    expect('cause' in new OutboxError('OUTBOX_NO_DATABASE', 'none')).toBe(false)
  })

  test('at() puts the place before the sentence and keeps code and cause', () => {
    const cause = new Error('deeper')
    const placed = OutboxError.at('bodies[3]', new OutboxError('OUTBOX_INVALID_BODY', 'is bad', { cause }))

    expect(placed).toMatchObject({ code: 'OUTBOX_INVALID_BODY', cause })
    expect((placed as Error).message).toBe(`bodies[3]: is bad. ${errorCatalogue.OUTBOX_INVALID_BODY}`)
  })

  test('at() keeps a hint that the error brought along', () => {
    const cause = new Error('deeper')
    const placed = OutboxError.at('bodies[3]', runtimeError('OUTBOX_STOPPING', 'stops', { cause }))
    const hint = runtimeErrorCatalogue.OUTBOX_STOPPING

    expect(placed).toMatchObject({ code: 'OUTBOX_STOPPING', hint, cause })
    expect((placed as Error).message).toBe(`bodies[3]: stops. ${hint}`)
  })

  test('at() adds no cause where there was none', () => {
    const placed = OutboxError.at('bodies[0]', new OutboxError('OUTBOX_INVALID_BODY', 'is bad'))

    expect('cause' in (placed as Error)).toBe(false)
  })

  test.each([new TypeError('mine'), 'text', null, undefined])(
    'at() gives other errors back as they are (case %#)',
    (error) => {
      expect(OutboxError.at('bodies[0]', error)).toBe(error)
    },
  )

  test('is() tells an error of ours, and which one', () => {
    const error = new OutboxError('OUTBOX_NO_DATABASE', 'none')

    expect(OutboxError.is(error)).toBe(true)
    expect(OutboxError.is(error, 'OUTBOX_NO_DATABASE')).toBe(true)
    expect(OutboxError.is(error, 'OUTBOX_INVALID_BODY')).toBe(false)
  })

  test('is() tells an error of another copy of the package', () => {
    const foreign = { [Symbol.for('postbox.error')]: true, code: 'OUTBOX_NO_DATABASE' }

    expect(OutboxError.is(foreign, 'OUTBOX_NO_DATABASE')).toBe(true)
  })

  test.each([null, undefined, 'OUTBOX_NO_DATABASE', 7, {}, new Error('x'), { code: 'OUTBOX_NO_DATABASE' }])(
    'is() refuses what is not ours (case %#)',
    (value) => {
      expect(OutboxError.is(value)).toBe(false)
    },
  )

  test('is() survives what throws when it is asked, and does not take it for ours', () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()

    expect(OutboxError.is(proxy)).toBe(false)
    expect(OutboxError.is(proxy, 'OUTBOX_NO_DATABASE')).toBe(false)
  })
})

describe('LeaseLostError', () => {
  test('is an error of ours with the code of a lost lease', () => {
    const cause = new Error('deeper')
    const error = new LeaseLostError('the lease on message 7 was lost', { cause })

    expect(error).toBeInstanceOf(OutboxError)
    expect(error.name).toBe('LeaseLostError')
    expect(OutboxError.is(error, 'OUTBOX_LEASE_LOST')).toBe(true)
    expect(error.message).toBe(`the lease on message 7 was lost. ${errorCatalogue.OUTBOX_LEASE_LOST}`)
    expect(error.cause).toBe(cause)
  })
})

describe('runtimeError', () => {
  test('is an OutboxError with the hint of its own catalogue', () => {
    const cause = new Error('deeper')
    const error = runtimeError('OUTBOX_SCHEMA_MISSING', 'there is no table', { cause })

    expect(error).toBeInstanceOf(OutboxError)
    expect(OutboxError.is(error, 'OUTBOX_SCHEMA_MISSING')).toBe(true)
    expect(error.hint).toBe(runtimeErrorCatalogue.OUTBOX_SCHEMA_MISSING)
    expect(error.docs).toBe('docs/reference/errors.md#outbox_schema_missing')
    expect(error.message).toBe(`there is no table. ${runtimeErrorCatalogue.OUTBOX_SCHEMA_MISSING}`)
    expect(error.cause).toBe(cause)
  })

  test('has no cause when none was given', () => {
    expect('cause' in runtimeError('OUTBOX_STOPPING', 'the outbox stops')).toBe(false)
  })
})

describe('the catalogues', () => {
  const entries = [...Object.entries(errorCatalogue), ...Object.entries(runtimeErrorCatalogue)]

  test.each(entries)('%s has a hint that is a sentence', (code, hint) => {
    expect(code).toMatch(/^OUTBOX_[A-Z]+(_[A-Z]+)*$/)
    expect(hint).toMatch(/^[A-Z].{15,}\.$/)
  })

  test('explain no code twice', () => {
    expect(new Set(entries.map(([code]) => code)).size).toBe(entries.length)
  })
})
