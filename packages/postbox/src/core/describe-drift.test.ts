import { describe, expect, test } from 'vitest'
import { describeDrift, relationWord } from './describe-drift.ts'
import type { ExpectedTable } from './schema-shape.ts'

const table = { name: '"s"."t"' } as ExpectedTable

// What each drift is called is in sql/schema-differences.test.ts, with the SQL that mends it.
describe('describeDrift', () => {
  test('calls what is not there missing', () => {
    expect(describeDrift({ table, kind: 'table', found: null })).toEqual({
      object: 'table "s"."t"',
      expected: 'a table',
      found: 'missing',
    })
  })

  test('knows no other kinds', () => {
    expect(() => describeDrift({ table, kind: 'mood' } as never)).toThrow('unreachable')
    const rule = { kind: 'perhaps', name: 'fillfactor', value: 1 } as never
    expect(() => describeDrift({ table, kind: 'storage', rule, found: null })).toThrow('unreachable')
  })
})

test('what has the name of a table is called by the word that drops it', () => {
  const words = ['view', 'materialized view', 'foreign table', 'sequence', 'index', 'type', 'relation']
  expect(['v', 'm', 'f', 'S', 'i', 'c', '?'].map(relationWord)).toEqual(words)
})
