import { expect, test } from 'vitest'
import type { Result } from './metrics.ts'
import { chartsOf, pageOf } from './page.ts'
import type { Report } from './report.ts'

function result(
  scenario: string,
  ...speeds: readonly (readonly [contender: string, perSecond: number])[]
): Result {
  const lines = speeds.map(([contender, perSecond]) => ({
    contender,
    tuning: 'tuned',
    settings: {},
    messages: [100],
    isGivenFewer: false,
    rounds: [{ perSecond }],
    refused: [],
  }))
  return {
    scenario,
    title: `Title of ${scenario}`,
    figure: 'perSecond',
    isMoreBetter: true,
    isPublishing: false,
    about: 'What is done.',
    cannot: {},
    lines,
  }
}

const report: Report = {
  startedAt: '2026-11-16T04:00:00.000Z',
  mode: 'full',
  rounds: 5,
  machine: '2 × a processor, 24 GB',
  node: 'Node 24.21.0',
  server: 'PostgreSQL 18.4',
  settings: { fsync: 'on' },
  versions: { 'pg-boss': '12.38.0' },
  ratios: {
    drainNoop: {
      value: 2.6,
      bar: 2.5,
      isMet: true,
      peer: 'pg-boss',
      spread: { min: 2.5, max: 2.7 },
      figures: { ours: 26, theirs: 10 },
      inTransaction: null,
    },
  },
  results: [result('drain-noop', ['pg-boss', 10], ['postbox', 26]), result('publish-many', ['postbox', 5])],
}

test('the page says on what it was measured, with which versions, and whether the bars are met', () => {
  const page = pageOf(report)
  expect(page).toContain('2026-11-16, 2 × a processor, 24 GB')
  expect(page).toContain('pg-boss 12.38.0')
  expect(page).toContain('fsync = on')
  expect(page).toContain('| drain, handlers do nothing | 2.60 | 2.50–2.70 | ≥ 2.5 | met | pg-boss |')
})

test('a bar that is missed is marked plainly, counted on top, and said by how much and against whom', () => {
  const ratio = {
    value: 0.66,
    bar: 0.55,
    isMet: false,
    peer: 'pg-boss',
    spread: { min: 0.5, max: 0.7 },
    figures: { ours: 660, theirs: 1_000 },
    inTransaction: null,
  }
  expect(pageOf(report)).toContain('All 1 bars are met.')
  const page = pageOf({ ...report, ratios: { ...report.ratios, walPerMessage: ratio } })
  expect(page).toContain('**1 of 2 bars are missed**')
  expect(page).toContain('≤ 0.55 | **MISSED** | pg-boss |')
  expect(page).toContain(
    '- WAL bytes, publish to ack: missed, 20 % above the bar, against pg-boss: 660 to 1,000 WAL bytes.',
  )
})

test('the page says how to run it again, what each scenario is, and where the settings come from', () => {
  const page = pageOf(report)
  expect(page).toContain('npm run bench -- --quick')
  expect(page).toContain('`drain-noop`, tuned, 1 round. What is done.')
  expect(page).toMatch(/- \*\*pg-boss\*\*: `\{.*\}`\\\n {2}.*https:\/\/pgboss\.io/)
  expect(page).not.toContain('- **bullmq**')
})

test('every chart that the page shows is written', () => {
  const shown = [...pageOf(report).matchAll(/\]\(benchmarks\/([\w-]+\.svg)\)/g)].map(([, name]) => name)
  expect(shown).toEqual(['drain-noop.svg', 'publish-many.svg'])
  expect([...chartsOf(report).keys()]).toEqual(shown)
})

test('the best is on top of a chart', () => {
  const chart = chartsOf(report).get('drain-noop.svg')!
  expect(chart.indexOf('>postbox<')).toBeLessThan(chart.indexOf('>pg-boss<'))
})

test('a chart names the tunings where there are several', () => {
  const [first] = report.results
  const lines = first!.lines.map((line, index) => (index === 0 ? { ...line, tuning: 'defaults' } : line))
  const chart = chartsOf({ ...report, results: [{ ...first!, lines }] }).get('drain-noop.svg')!
  expect(chart).toContain('>pg-boss, defaults<')
  expect(chart).toContain('>postbox, tuned<')
})

test('who cannot publish in the transaction of the application is marked where publishing is measured', () => {
  const publishing = { ...result('publish-64', ['bullmq', 10], ['postbox', 20]), isPublishing: true }
  const whole = { ...report, results: [publishing] }
  expect(pageOf(whole)).toMatch(/- \*\*bullmq\*\*.*\n.* It cannot publish in the application's transaction\./)
  expect(pageOf(whole)).toContain("- † cannot publish in the application's transaction")
  expect(chartsOf(whole).get('publish-64.svg')).toContain('>bullmq †<')
  expect(chartsOf(whole).get('publish-64.svg')).toContain('† commits by itself')
  expect(pageOf(report)).toContain('but for bullmq, which cannot')
})

test('a chart of latencies has the p50 beside the p99', () => {
  const [first] = report.results
  const lines = first!.lines.map((line) => ({ ...line, rounds: [{ p99Ms: 12.345, p50Ms: 4 }] }))
  const chart = chartsOf({ ...report, results: [{ ...first!, figure: 'p99Ms', lines }] })
  expect(chart.get('drain-noop.svg')).toContain('>12.35 (p50 4.00)<')
})

test('what is not reported is on the page, with the reason', () => {
  const [first] = report.results
  const lines = first!.lines.map((line) => ({ ...line, refused: ['3 messages were not handled'] }))
  expect(pageOf({ ...report, results: [{ ...first!, lines }] })).toContain(
    '- drain-noop: pg-boss, tuned: not reported: 3 messages were not handled',
  )
  expect(pageOf(report)).not.toContain('Not reported')
})
