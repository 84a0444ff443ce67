import { expect, test } from 'vitest'
import { historyFrom } from './failure-history.ts'

const nothing = { dropped: 0, cycles: [] }

test('a cycle is read with its times as dates', () => {
  const cycle = {
    attempts: 3,
    deliveries: 4,
    firstAttemptAt: '2026-01-01T00:00:01.000001Z',
    lastAttemptAt: null,
    failedAt: '2026-01-01T00:00:03.123999Z',
    reason: 'rejected',
    error: null,
    replayedAt: '2026-01-02T00:00:00.000000Z',
    replayedBy: 'ann',
    generationBefore: null,
    generationAfter: 2,
    operation: null,
  }

  expect(historyFrom(JSON.stringify({ dropped: 2, cycles: [cycle] }))).toEqual({
    dropped: 2,
    cycles: [
      {
        ...cycle,
        firstAttemptAt: new Date('2026-01-01T00:00:01Z'),
        failedAt: new Date('2026-01-01T00:00:03.123Z'),
        replayedAt: new Date('2026-01-02T00:00:00Z'),
      },
    ],
  })
})

test.each([
  [null],
  ['null'],
  ['[]'],
  ['"x"'],
  ['7'],
  ['{}'],
  ['{"dropped":"x","cycles":{}}'],
  ['{"cycles":[1,null,[]]}'],
])('a history of another shape reads as nothing: %s', (text) => {
  expect(historyFrom(text)).toEqual(nothing)
})

test('members of a cycle that are missing or of another type do not hide it', () => {
  const [cycle] = historyFrom('{"cycles":[{"failedAt":"never","attempts":"3","more":1}]}').cycles

  expect(cycle).toEqual({
    attempts: 0,
    deliveries: 0,
    firstAttemptAt: null,
    lastAttemptAt: null,
    failedAt: null,
    reason: '',
    error: null,
    replayedAt: null,
    replayedBy: '',
    generationBefore: null,
    generationAfter: null,
    operation: null,
  })
})
