import { describe, expect, test } from 'vitest'
import { OutboxError } from '../core/errors.ts'
import { orSchemaMissing } from './schema-missing.ts'

function failure(code: string): Error {
  return Object.assign(new Error('from the server'), { code })
}

describe('an error of a statement', () => {
  test('says what to do when the table was never made, and keeps what the server said', () => {
    const cause = failure('42P01')
    const error = orSchemaMissing(cause, '"shop"."outbox"')
    expect(OutboxError.is(error, 'OUTBOX_SCHEMA_MISSING')).toBe(true)
    expect(error).toMatchObject({
      message: expect.stringContaining('there is no table "shop"."outbox" in this database'),
      cause,
    })
  })

  test.each([
    ['a column that is missing', failure('42703')],
    ['a right that is missing', failure('42501')],
    ['a connection that broke', failure('ECONNRESET')],
    ['a value that is no error', 'gone'],
    ['nothing at all', undefined],
  ])('is left as it is when it is about %s', (_, error) => {
    expect(orSchemaMissing(error, 'outbox')).toBe(error)
  })
})
