import { describe, expect, test } from 'vitest'
import { resolveSchemaSqlOptions } from './schema-sql-options.ts'

const resolve = (options: unknown) => () => resolveSchemaSqlOptions(options as never)

describe('resolveSchemaSqlOptions', () => {
  test.each([[undefined], [{}], [{ autovacuum: undefined }]])(
    'autovacuum is on by default (case %#)',
    (options) => {
      expect(resolveSchemaSqlOptions(options as never)).toMatchObject({ autovacuum: {} })
    },
  )

  test('autovacuum can be left to the server, or be tuned', () => {
    expect(resolveSchemaSqlOptions({ autovacuum: false }).autovacuum).toBe(false)
    expect(resolveSchemaSqlOptions({ autovacuum: { threshold: 5 } }).autovacuum).toMatchObject({
      threshold: 5,
    })
  })

  // These become part of the text of a statement: nothing but a number may.
  test.each([
    null,
    { autovaccum: false },
    { autovacuum: true },
    { autovacuum: { treshold: 5 } },
    { autovacuum: { threshold: '0); drop table x; --' } },
    { autovacuum: { threshold: Number.NaN } },
    { autovacuum: { threshold: -1 } },
    { autovacuum: { insertThreshold: 1.5 } },
    { autovacuum: { costDelay: Number.POSITIVE_INFINITY } },
    { autovacuum: { costDelay: 101 } },
    { autovacuum: { costLimit: 0 } },
    { autovacuum: { costLimit: { toString: () => '1' } } },
  ])('refuses what is no option or no number (case %#)', (options) => {
    expect(resolve(options)).toThrow(expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' }))
  })
})
