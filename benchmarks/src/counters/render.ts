import type { Finding } from './compare.ts'

const headings = ['per message', 'value', 'baseline', 'verdict'] as const

/** Lines that are zero and were zero are left out: nobody reads that a publish deletes nothing. */
export function renderTable(findings: readonly Finding[]): string {
  const shown = findings.filter(({ value, baseline }) => value !== 0 || baseline !== 0)
  const rows = shown.map(cellsOf)
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: readonly string[]): string => {
    const [name = '', value = '', baseline = '', verdict = ''] = cells
    const [first = 0, second = 0, third = 0] = widths
    return `  ${name.padEnd(first)}  ${value.padStart(second)}  ${baseline.padStart(third)}  ${verdict}`.trimEnd()
  }
  const scenarios = [...new Set(shown.map(({ scenario }) => scenario))]
  const blocks = scenarios.map((scenario) => {
    const ofScenario = rows.filter((_, index) => shown[index]?.scenario === scenario)
    return [scenario, ...ofScenario.map(line)].join('\n')
  })
  return [line(headings), ...blocks].join('\n\n')
}

/** The closing line: how much was judged, and what to do when it failed on purpose. */
export function renderVerdict(findings: readonly Finding[]): string {
  const failed = findings.filter(({ problem }) => problem !== null).length
  const gated = findings.filter(({ gate }) => gate !== 'shown').length
  if (failed === 0) return `All ${gated} gated counters hold.`
  return `${failed} of ${gated} gated counters failed. If that is meant, say why in the commit and run again with --update.`
}

function cellsOf(finding: Finding): readonly string[] {
  return [finding.counter, number(finding.value), number(finding.baseline), verdictOf(finding)]
}

function verdictOf({ gate, problem }: Finding): string {
  if (problem !== null) return `FAILED: ${problem}`
  return gate === 'shown' ? 'not gated' : 'ok'
}

function number(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return '–'
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) >= 100 ? 1 : 4)
}
