import { expect, test } from 'vitest'
import type { StorageModes } from '../core/storage-modes.ts'
import { expectedSchema } from './expected-schema.ts'
import { resolveNames } from './names.ts'

const names = resolveNames({ schema: 's', table: 't' })

// Dead letters in place are read together with those that were moved, by the same statements: they need the table, too.
test.each<[StorageModes['deadLetters'], StorageModes['delivered'], boolean, boolean]>([
  ['table', 'delete', true, false],
  ['in-place', 'delete', true, false],
  ['discard', 'delete', false, false],
  ['table', 'table', true, true],
  ['discard', 'table', false, true],
])('dead letters: %s, delivered: %s', (...[deadLetters, delivered, ...needed]) => {
  const tables = expectedSchema(names, { autovacuum: true, deadLetters, delivered })
  const relations = tables.map(({ relation }) => relation)

  expect(['t_dead', 't_delivered'].map((relation) => relations.includes(relation))).toEqual(needed)
  expect(relations[0]).toBe('t')
  expect(relations.at(-1)).toBe('t_meta')
})
