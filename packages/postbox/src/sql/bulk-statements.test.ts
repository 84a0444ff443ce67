import { describe, expect, test } from 'vitest'
import { discardDeadLetter } from './discard-dead-letter.ts'
import { discardDeadLetters } from './discard-dead-letters.ts'
import { forgetOperation } from './forget-operation.ts'
import { listKeys } from './list-keys.ts'
import { listOperations } from './list-operations.ts'
import { lockOperation } from './lock-operation.ts'
import { resolveNames } from './names.ts'
import { purgeDeadLetters } from './purge-dead-letters.ts'
import { replayDeadLetter } from './replay-dead-letter.ts'
import { type ReplayBatch, replayDeadLetters } from './replay-dead-letters.ts'
import { resumeKey } from './resume-key.ts'
import { sampleDeadLetters } from './sample-dead-letters.ts'
import { skipKey } from './skip-key.ts'
import { startOperation } from './start-operation.ts'
import type { Statement } from './statement.ts'
import { surveyDeadLetters } from './survey-dead-letters.ts'

const names = resolveNames({ schema: 'a "b', table: 'c; --' })
const hostile = `'; drop table x; --`
const id = '01890000-0000-7000-8000-00000000000a'
const any = { queue: null, reason: null, key: null, search: null, sinceMs: null, untilMs: null }
const query = { queue: hostile, reason: hostile, key: hostile, search: hostile, sinceMs: 1.5, untilMs: 20 }
const after = { failedMicros: '16000', place: 'moved', seq: '3' } as const
const batch: ReplayBatch = {
  operation: id,
  stretch: { query, after, beforeMicros: '99000' },
  size: 7,
  by: hostile,
  settings: { perSecond: 5, limit: 9, generation: 1, delayMs: 4 },
  historyLimit: 20,
  wake: 'quiet',
}
const start = { id, kind: 'replay', by: hostile, filter: { a: hostile }, settings: {} } as const

const statements: readonly Statement<unknown>[] = [
  replayDeadLetters(names, batch),
  replayDeadLetters(names, { ...batch, settings: { ...batch.settings, perSecond: null } }),
  discardDeadLetters(names, batch),
  discardDeadLetter(names, { id, by: hostile, operation: id, wake: 'quiet' }),
  discardDeadLetters(names, { ...batch, stretch: { ...batch.stretch, sparesParked: true } }),
  resumeKey(names, { queue: hostile, key: hostile, by: hostile, historyLimit: 20, wake: 'quiet' }),
  skipKey(names, { queue: hostile, key: hostile, by: hostile, operation: id, wake: 'quiet' }),
  listKeys(names, { queue: hostile, state: null, limit: 5, after: null }),
  listKeys(names, { queue: hostile, state: 'parked', limit: 5, after: { state: 'parked', key: hostile } }),
  listKeys(names, {
    ...{ queue: hostile, state: 'retrying', limit: 5 },
    after: { state: 'retrying', dueMicros: '7', seq: '8' },
  }),
  surveyDeadLetters(names, { query, bound: 5 }),
  sampleDeadLetters(names, { query, limit: 5 }),
  purgeDeadLetters(names, { place: 'moved', olderThanMs: 1, limit: 2 }),
  purgeDeadLetters(names, { place: 'quarantined', olderThanMs: 1, limit: 2 }),
  startOperation(names, start),
  lockOperation(names, { id, kind: 'replay', lockMs: 500 }),
  forgetOperation(names, id),
  listOperations(names, { limit: 5, after: { startedMicros: '5', id } }),
  listOperations(names, { limit: 5, after: null }),
]

test.each(statements.map((statement) => [statement.name, statement] as const))(
  '%s has the values of callers only as parameters, each of them used, and the tables quoted',
  (_, { text, values }) => {
    const used = new Set(text.match(/\$\d+/g))

    expect([...used].sort()).toEqual(values.map((_value, index) => `$${index + 1}`).sort())
    expect(text).not.toContain(hostile)
    expect(text).not.toContain(id)
    expect(text).toContain('"a ""b"."c; --')
  },
)

test('a lock waits as long as its session does, unless told otherwise', () => {
  expect(lockOperation(names, { id, kind: 'replay', lockMs: null }).values).toEqual([id, 'replay', null])
  expect(lockOperation(names, { id, kind: 'replay', lockMs: 500 }).values).toEqual([id, 'replay', '500'])
})

describe('the stretch of a batch', () => {
  const boundsOf = (stretch: Partial<ReplayBatch['stretch']>) =>
    discardDeadLetters(names, {
      ...batch,
      stretch: { query: any, after: null, beforeMicros: null, ...stretch },
    })

  test('has one beginning and one end in each place, whatever is asked for', () => {
    const { text } = boundsOf({ query, after, beforeMicros: '99000' })

    expect(text.match(/\) >= \(/g)).toHaveLength(2)
    expect(text.match(/\) <= \(/g)).toHaveLength(2)
  })

  test.each([
    ['nothing', {}, [7]],
    ['since', { query: { ...any, sinceMs: 1.5 } }, ['1500', 7]],
    ['until', { query: { ...any, untilMs: 20 } }, ['19999', 7]],
    [
      'until, after the operation began',
      { query: { ...any, untilMs: 20 }, beforeMicros: '15000' },
      ['14999', 7],
    ],
    [
      'until, before the operation began',
      { query: { ...any, untilMs: 20 }, beforeMicros: '25000' },
      ['19999', 7],
    ],
    ['a place, of what is moved', { query: { ...any, sinceMs: 1 }, after }, ['16000', 7, '4', '0']],
    [
      'a place, of what is quarantined',
      { after: { ...after, place: 'quarantined' as const } },
      ['16000', 7, String(2n ** 63n - 1n), '4'],
    ],
  ])('by %s', (_, stretch, bounds) => {
    expect(boundsOf(stretch).values.slice(0, -2)).toEqual(bounds)
  })
})

test('a replay has the lock of a key before the sequence is asked: what it inserts is made of what the lock gives', () => {
  const replay = { id, by: 'me', generation: null, delayMs: 0, historyLimit: 20, wake: 'quiet' } as const
  for (const { text } of [replayDeadLetter(names, replay), replayDeadLetters(names, batch)]) {
    expect(text).toMatch(/from replayed, ordered\s+where/)
    expect(text.indexOf('ordered as materialized')).toBeLessThan(text.indexOf('insert into'))
    expect(text).toContain("(select queue, key from replayed where lands = 'behind_key' and due is null)")
  }
})
