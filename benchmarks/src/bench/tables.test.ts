import { expect, test } from 'vitest'
import type { Result } from './metrics.ts'
import { asMarkdown, asText, ratioTable, refusals, resultTable, sentencesOf } from './tables.ts'

const result: Result = {
  scenario: 'drain-noop',
  title: 'Drain',
  figure: 'perSecond',
  isMoreBetter: true,
  about: 'What is done.',
  cannot: { redis: 'it is none of these' },
  lines: [
    {
      contender: 'postbox',
      tuning: 'tuned',
      settings: {},
      messages: [100_000, 100_000, 100_000],
      isGivenFewer: false,
      rounds: [
        { perSecond: 20_000, walBytes: 777.4, statements: null },
        { perSecond: 21_000, walBytes: 777.6, statements: null },
        { perSecond: 30_000, walBytes: 777.5, statements: null },
      ],
      refused: [],
    },
    {
      contender: 'bullmq',
      tuning: 'tuned',
      settings: {},
      messages: [700, 650],
      isGivenFewer: true,
      rounds: [],
      refused: ['2 messages were not handled'],
    },
  ],
}

test('a table has the figure first, then what else was measured, and a dash for what was not', () => {
  expect(asText(resultTable(result)).split('\n')).toEqual([
    '                 messages  messages/s         spread  WAL bytes',
    'postbox, tuned    100,000      21,000  20,000–30,000        778',
    'bullmq, tuned   650–700 *           –              –          –',
  ])
})

test('the same table is written as Markdown', () => {
  expect(asMarkdown(resultTable(result)).split('\n').slice(0, 3)).toEqual([
    '|  | messages | messages/s | spread | WAL bytes |',
    '| --- | ---: | ---: | ---: | ---: |',
    '| postbox, tuned | 100,000 | 21,000 | 20,000–30,000 | 778 |',
  ])
})

test('who was given fewer messages is marked, which is explained, and who cannot do it is named with the reason', () => {
  expect(sentencesOf(result)).toEqual([
    '* slow, and given fewer messages; a smaller backlog is the cheaper one, so this favours it',
    'redis: cannot: it is none of these',
  ])
  const equals = result.lines.map((line) => ({ ...line, isGivenFewer: false }))
  expect(sentencesOf({ ...result, cannot: {}, lines: equals })).toEqual([])
})

test('what is not reported is said, with the reason', () => {
  expect(refusals([result])).toEqual(['drain-noop: bullmq, tuned: not reported: 2 messages were not handled'])
})

test('a bar that is missed is called that', () => {
  const ratio = { value: 0.6, bar: 0.55, isMet: false, peer: 'pg-boss', spread: { min: 0.5, max: 0.7 } }
  expect(ratioTable({ walPerMessage: ratio }).rows).toEqual([
    ['WAL bytes, publish to acknowledgement', '0.60', '0.50–0.70', '≤ 0.55', 'MISSED', 'pg-boss'],
  ])
})
