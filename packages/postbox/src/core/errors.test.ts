import { describe, expect, test } from 'vitest'
import { catalogue, type ErrorCode, OutboxError } from './errors.ts'

describe('OutboxError', () => {
  test('carries code, sentence, hint, docs and cause', () => {
    const cause = new Error('deeper')
    const error = new OutboxError('OUTBOX_NO_DATABASE', 'this outbox has none', { cause })

    expect(error).toBeInstanceOf(Error)
    expect(error.name).toBe('OutboxError')
    expect(error.code).toBe('OUTBOX_NO_DATABASE')
    expect(error.hint).toBe(catalogue.OUTBOX_NO_DATABASE)
    expect(error.docs).toBe('docs/reference/errors.md#outbox_no_database')
    expect(error.message).toBe(`this outbox has none. ${catalogue.OUTBOX_NO_DATABASE}`)
    expect(error.cause).toBe(cause)
  })

  test.each(['did you mean "orders"?', 'Enough.', 'No!'])(
    'does not put a full stop behind %j',
    (sentence) => {
      const error = new OutboxError('OUTBOX_UNKNOWN_QUEUE', sentence)

      expect(error.message).toBe(`${sentence} ${catalogue.OUTBOX_UNKNOWN_QUEUE}`)
    },
  )

  test('has no cause when none was given', () => {
    expect('cause' in new OutboxError('OUTBOX_NO_DATABASE', 'none')).toBe(false)
  })

  test('at() puts the place before the sentence and keeps code and cause', () => {
    const cause = new Error('deeper')
    const placed = OutboxError.at('bodies[3]', new OutboxError('OUTBOX_INVALID_BODY', 'is bad', { cause }))

    expect(placed).toMatchObject({ code: 'OUTBOX_INVALID_BODY', cause })
    expect((placed as Error).message).toBe(`bodies[3]: is bad. ${catalogue.OUTBOX_INVALID_BODY}`)
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
})

describe('the catalogue', () => {
  test.each(Object.keys(catalogue) as ErrorCode[])('%s has a hint that is a sentence', (code) => {
    expect(code).toMatch(/^OUTBOX_[A-Z]+(_[A-Z]+)*$/)
    expect(catalogue[code]).toMatch(/^[A-Z].{15,}\.$/)
  })
})
