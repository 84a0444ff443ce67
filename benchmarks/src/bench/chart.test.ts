import { expect, test } from 'vitest'
import { barChart } from './chart.ts'
import { scenarios } from './scenarios.ts'

const bar = { min: 0, max: 10, text: '10', isOurs: false }

test('the longest bar of a chart is that of the largest value, and text is escaped', () => {
  const chart = barChart({
    title: 'a < b',
    unit: '"ms"',
    bars: [
      { ...bar, label: 'half', value: 5, isOurs: true },
      { ...bar, label: 'all', value: 10 },
    ],
  })
  expect(chart).toContain('aria-label="a &lt; b: &quot;ms&quot;"')
  expect(
    [...chart.matchAll(/<rect class="(\w+)" .* width="([\d.]+)"/g)].map(([, kind, width]) => [kind, width]),
  ).toEqual([
    ['ours', '312.0'],
    ['theirs', '624.0'],
  ])
})

test('no text of a chart reaches over its edge or into its bars, whoever takes part', () => {
  for (const { title, cast } of scenarios) {
    const bars = cast.map(({ contender, tuning }) => {
      const label = `${contender.name}, ${tuning}`
      return { ...bar, label, value: 10, text: '1,000,000' }
    })
    const chart = barChart({ title, unit: 'messages/s: more is better', bars })
    for (const [, kind, x, text] of chart.matchAll(/<text(?: class="(\w+)")? x="([\d.]+)"[^>]*>([^<]*)</g)) {
      const width = text!.length * 7.5
      const [from, to] = kind === 'label' ? [Number(x) - width, Number(x)] : [Number(x), Number(x) + width]
      expect({ text, isInside: from >= 0 && to <= 760 }).toEqual({ text, isInside: true })
    }
  }
})

test('a chart of nobody says so', () => {
  expect(barChart({ title: 'a', unit: 'ms', bars: [] })).toContain('nobody has a figure')
})
