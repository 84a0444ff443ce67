import { expect, test } from 'vitest'
import { type MetricName, type Metrics, metrics, type Result } from './metrics.ts'
import { ratiosOf } from './ratios.ts'
import { scenarios } from './scenarios.ts'
import { columns, textOf } from './text.ts'

const kinds: Readonly<Record<string, readonly MetricName[]>> = {
  'pinned-xmin': ['p50Ms', 'p99Ms', 'deadAtEnd', 'late', ...namesIn('thirds')],
  recovery: ['recoveryMs'],
  'idle-latency': ['p50Ms', 'p99Ms'],
  'load-1000': ['p50Ms', 'p99Ms'],
  timers: ['p50Ms', 'p99Ms'],
  'four-processes': [
    'oneProcess',
    'fourProcesses',
    'fourToOne',
    'peakRssMb',
    'peakHeapMb',
    ...namesIn('costs'),
  ],
}

function namesIn(group: string): readonly MetricName[] {
  return (Object.keys(metrics) as MetricName[]).filter((name) => metrics[name].group === group)
}

/** Everybody with figures as large as they may be, in every scenario. */
const results: readonly Result[] = scenarios.map((scenario) => {
  const { name, title, about, figure, isMoreBetter, isPublishing = false, cannot = {}, cast } = scenario
  const drained: readonly MetricName[] = ['perSecond', 'peakRssMb', 'peakHeapMb', ...namesIn('costs')]
  const measured = kinds[name] ?? drained
  const figures = (value: number): Metrics =>
    Object.fromEntries(measured.map((one) => [one, metrics[one].digits === 0 ? value : value / 100]))
  const lines = cast.map(({ contender, tuning, settings }) => ({
    contender: contender.name,
    tuning,
    settings,
    messages: [scenario.messages],
    isGivenFewer: true,
    rounds: scenario.rounds === 1 ? [figures(30_000)] : [figures(20_000), figures(30_000)],
    refused: [],
  }))
  return { scenario: name, title, about, figure, isMoreBetter, isPublishing, cannot, lines }
})

test('what is printed fits into a terminal, whoever takes part', () => {
  const text = textOf({
    startedAt: '2026-11-16T04:00:00.000Z',
    mode: 'full',
    rounds: 5,
    machine: '2 × a processor, 24 GB',
    node: 'Node 24.21.0',
    server: 'PostgreSQL 18.4',
    settings: { fsync: 'on', shared_preload_libraries: 'pg_stat_statements', max_wal_size: '8GB' },
    versions: {},
    ratios: ratiosOf(results),
    results,
  })
  expect(text.split('\n').filter(({ length }) => length > columns)).toEqual([])
  expect(text).toContain('By third of the run')
  expect(text).toContain('Costs per message')
})
