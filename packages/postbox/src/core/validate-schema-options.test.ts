import { describe, expect, test } from 'vitest'
import { resolveValidateSchemaOptions } from './validate-schema-options.ts'

describe('resolveValidateSchemaOptions', () => {
  test.each([[undefined], [{}], [{ autovacuum: undefined }], [{ autovacuum: true }]])(
    'autovacuum is looked at by default (case %#)',
    (options) => {
      expect(resolveValidateSchemaOptions(options as never)).toEqual({ autovacuum: true })
    },
  )

  test('autovacuum can be left out', () => {
    expect(resolveValidateSchemaOptions({ autovacuum: false })).toEqual({ autovacuum: false })
  })

  test.each([null, 'all', { autovacuum: 0 }, { autovacuum: {} }, { autovaccum: false }])(
    'refuses what is no option (case %#)',
    (options) => {
      expect(() => resolveValidateSchemaOptions(options as never)).toThrow(
        expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' }),
      )
    },
  )
})
