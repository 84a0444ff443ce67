import { expect, test } from 'vitest'
import { resolveDeadLetterPage } from '../core/dead-letter-options.ts'
import { countDeadLetters } from './count-dead-letters.ts'
import { getDeadLetter } from './get-dead-letter.ts'
import { listDeadLetters } from './list-dead-letters.ts'
import { resolveNames } from './names.ts'
import { replayDeadLetter } from './replay-dead-letter.ts'

const names = resolveNames({ schema: 'a "b', table: 'c; --' })
const id = '01890000-0000-7000-8000-00000000000a'
const hostile = `'; drop table x; --`
const resolved = resolveDeadLetterPage({
  queue: hostile,
  reason: 'rejected',
  key: hostile,
  search: hostile,
  since: new Date(0),
  until: new Date(1),
  limit: 7,
  after: '5-d-3',
})
// Whatever the options let through: the text does not depend on them.
const page = { ...resolved, query: { ...resolved.query, reason: hostile } }

const statements = [
  listDeadLetters(names, page),
  countDeadLetters(names, page.query, 10),
  getDeadLetter(names, id),
  replayDeadLetter(names, {
    id,
    by: hostile,
    generation: 1,
    delayMs: 0,
    historyLimit: 20,
    wake: 'quiet',
  }),
]

test.each(statements.map((statement) => [statement.name, statement] as const))(
  '%s has the values of callers only as parameters, each of them used, and the tables quoted',
  (_, { text, values }) => {
    const used = new Set(text.match(/\$\d+/g))

    expect([...used].sort()).toEqual(values.map((_value, index) => `$${index + 1}`).sort())
    expect(text).not.toContain(hostile)
    expect(text).not.toContain(id)
    expect(text).toContain('"a ""b"."c; --_dead"')
  },
)

test.each([
  ['where the page before ended, when that lies below the time', { until: new Date(1_001) }, true],
  ['the time, when that is lower', { until: new Date(1_000) }, false],
  ['where the page before ended, without a time', {}, true],
])('a page has one upper end in each place: %s', (_, options, isLeft) => {
  const given = resolveDeadLetterPage({ ...options, after: '1000000-d-3' })
  const { text, values } = listDeadLetters(names, given)

  expect(text.match(/ <= \(/g)).toHaveLength(2)
  expect(values.includes('1000000')).toBe(isLeft)
})

test('what a filter does not say is not in the text', () => {
  const { text, values } = listDeadLetters(names, resolveDeadLetterPage())

  expect(values).toEqual([51])
  expect(text).not.toMatch(/queue =|queue desc|strpos|failure_reason =|key =/)
})
