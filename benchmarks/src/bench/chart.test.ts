import { expect, test } from 'vitest'
import { barChart } from './chart.ts'
import { scenarios } from './scenarios.ts'

const bar = { min: 0, max: 10, text: '10', kind: 'peer' } as const

test('the longest bar of a chart is that of the largest value, and text is escaped', () => {
  const chart = barChart({
    title: 'a < b',
    unit: '"ms"',
    bars: [
      { ...bar, label: 'half', value: 5, kind: 'ours' },
      { ...bar, label: 'all', value: 10 },
    ],
  })
  expect(chart).toContain('aria-label="a &lt; b: &quot;ms&quot;"')
  expect(
    [...chart.matchAll(/<rect class="(\w+)" .* width="([\d.]+)"/g)].map(([, kind, width]) => [kind, width]),
  ).toEqual([
    ['ours', '341.5'],
    ['peer', '683.0'],
  ])
})

test('no text of a chart reaches over its edge or into its bars, whoever takes part', () => {
  for (const { title, cast } of scenarios) {
    const bars = cast.map(({ contender, tuning }) => {
      const label = `${contender.name}, ${tuning}`
      return { ...bar, label, value: 10, text: '123,456.78 (p50 123,456.78)' }
    })
    const chart = barChart({ title, unit: 'messages/s: more is better', bars })
    for (const [, kind, x, text] of chart.matchAll(/<text(?: class="(\w+)")? x="([\d.]+)"[^>]*>([^<]*)</g)) {
      const width = text!.length * 7.5
      const [from, to] = kind === 'label' ? [Number(x) - width, Number(x)] : [Number(x), Number(x) + width]
      expect({ text, isInside: from >= 0 && to <= 760 }).toEqual({ text, isInside: true })
    }
  }
})

test('a limit is an outline, and a spread that is too small to be seen is not drawn', () => {
  const near = { ...bar, label: 'near', value: 10, min: 9.99 }
  const chart = (kind: 'peer' | 'limit', min: number): string =>
    barChart({ title: 'a', unit: 'ms', bars: [{ ...near, kind, min }] })
  expect(chart('limit', 0)).toContain('<rect class="limit"')
  expect(chart('limit', 0)).toContain('<path class="spread"')
  expect(chart('peer', 9.99)).not.toContain('<path class="spread"')
})

test('a chart of nobody says so', () => {
  expect(barChart({ title: 'a', unit: 'ms', bars: [] })).toContain('nobody has a figure')
})
