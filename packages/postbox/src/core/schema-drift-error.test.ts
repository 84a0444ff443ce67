import { describe, expect, test } from 'vitest'
import { OutboxError } from './errors.ts'
import { schemaDriftError } from './schema-drift-error.ts'

const index = {
  object: 'index "s"."i"',
  expected: '(a)',
  found: 'missing',
  sql: 'drop index x;\ncreate index y;',
}
const column = { object: 'column "s"."t".a', expected: 'text', found: 'uuid', sql: 'alter table t;' }

describe('the error of a schema that differs', () => {
  test('has every difference in its message, each with the SQL below it, and says that nothing was done', () => {
    const { message, hint } = schemaDriftError('"s"."t"', [index, column])

    expect(message).toBe(`the schema of "s"."t" has 2 differences:
1. index "s"."i": expected (a), found missing. Mended by
     drop index x;
     create index y;
2. column "s"."t".a: expected text, found uuid. Mended by
     alter table t;
Nothing was changed. ${hint}`)
  })

  test('counts one as one', () => {
    expect(schemaDriftError('"s"."t"', [index]).message).toMatch(/^the schema of "s"."t" has 1 difference:\n/)
  })

  test('is one of ours, with the differences for programs', () => {
    const error = schemaDriftError('"s"."t"', [index, column])

    expect(OutboxError.is(error, 'OUTBOX_SCHEMA_DRIFT')).toBe(true)
    expect(error.differences).toEqual([index, column])
    expect(Object.isFrozen(error.differences)).toBe(true)
  })
})
