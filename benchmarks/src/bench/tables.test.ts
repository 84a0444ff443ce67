import { expect, test } from 'vitest'
import type { Result } from './metrics.ts'
import {
  asMarkdown,
  asText,
  circumstancesOf,
  ratioSentences,
  ratioTable,
  refusals,
  resultTables,
  sentencesOf,
  show,
} from './tables.ts'

const result: Result = {
  scenario: 'drain-noop',
  title: 'Drain',
  figure: 'perSecond',
  isMoreBetter: true,
  isPublishing: false,
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

test('a table has the figure first, costs have one of their own, and what was not measured is a dash', () => {
  const [figures, costs] = resultTables(result).map(([title, table]) => [title, ...asText(table).split('\n')])
  expect(figures).toEqual([
    '',
    '          messages  messages/s         spread',
    'postbox    100,000      21,000  20,000–30,000',
    'bullmq   650–700 *           –              –',
  ])
  expect(costs).toEqual([
    'Costs per message',
    '           WAL',
    '         bytes',
    'postbox    778',
    'bullmq       –',
  ])
})

test('a tuning is named once where it is that of everybody, else in every line', () => {
  const [first, second] = result.lines
  expect(circumstancesOf(result)).toBe('tuned, 3 rounds')
  const mixed = { ...result, lines: [first!, { ...second!, tuning: 'defaults' }] }
  expect(circumstancesOf(mixed)).toBe('3 rounds')
  expect(resultTables(mixed)[0]![1].rows.map(([label]) => label)).toEqual([
    'postbox, tuned',
    'bullmq, defaults',
  ])
})

test('the same table is written as Markdown', () => {
  const [, table] = resultTables(result)[0]!
  expect(asMarkdown(table).split('\n').slice(0, 3)).toEqual([
    '|  | messages | messages/s | spread |',
    '| --- | ---: | ---: | ---: |',
    '| postbox | 100,000 | 21,000 | 20,000–30,000 |',
  ])
})

test('a rate of less than ten has a digit more, a count has none', () => {
  expect([show(0.48, 0), show(7.5, 0), show(7, 0), show(12.5, 0), show(0.123, 2)]).toEqual([
    '0.5',
    '7.5',
    '7',
    '13',
    '0.12',
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

const missed = {
  value: 0.5,
  bar: 2,
  isMet: false,
  peer: 'bullmq',
  spread: { min: 0.5, max: 0.7 },
  figures: { ours: 500, theirs: 1_000 },
  inTransaction: { value: 2.5, peer: 'pg-boss notify' },
}

test('a bar that is missed is called that, and a peer that commits by itself is marked', () => {
  expect(ratioTable({ publish64VsPeer: missed }).rows).toEqual([
    ['publish by 64, to peers that notify', '0.50', '0.50–0.70', '≥ 2', 'MISSED', 'bullmq †'],
  ])
})

test('by how much a bar is missed and against whom is said, and what the ratio to those in the transaction is', () => {
  expect(ratioSentences({ publish64VsPeer: missed })).toEqual([
    'publish by 64, to peers that notify: missed, 75 % below the bar, against bullmq: 500 to 1,000 messages/s',
    "† cannot publish in the application's transaction: it commits by itself, and is spared BEGIN and COMMIT. To the best that can: publish by 64, to peers that notify: 2.50 (pg-boss notify)",
  ])
  const alone = { ...missed, peer: null, figures: { ours: 500, theirs: null }, inTransaction: null }
  expect(ratioSentences({ pinnedXminP99Ms: { ...alone, value: 500, bar: 50 } })).toEqual([
    'pinned xmin, p99 of the last, ms: missed, 10 times the bar',
  ])
  expect(ratioSentences({ publish64VsPlain: { ...alone, isMet: true } })).toEqual([])
})
