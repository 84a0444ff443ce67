import { type Line, type MetricName, metrics, type Result, valuesOf } from './metrics.ts'
import { definitions, type RatioName, type Ratios } from './ratios.ts'
import { percentile, spreadOf } from './statistics.ts'

export interface Table {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** A line for each contender: medians, and of the first figure the spread, too. */
export function resultTable({ lines, figure }: Result): Table {
  const names = Object.keys(metrics) as MetricName[]
  const shown = names.filter((name) => lines.some((line) => valuesOf(line, name).length > 0))
  const columns = [figure, ...shown.filter((name) => name !== figure)].filter((name) => shown.includes(name))
  const cellOf = (line: Line, name: MetricName): string => {
    const values = valuesOf(line, name)
    if (values.length === 0) return '–'
    return show(percentile(values, 50), metrics[name].digits)
  }
  return {
    head: [
      '',
      'messages',
      ...columns.flatMap((name) =>
        name === figure ? [metrics[name].title, 'spread'] : [metrics[name].title],
      ),
    ],
    rows: lines.map((line) => [
      `${line.contender}, ${line.tuning}`,
      messagesIn(line),
      ...columns.flatMap((name) =>
        name === figure
          ? [cellOf(line, name), spread(valuesOf(line, name), metrics[name].digits)]
          : [cellOf(line, name)],
      ),
    ]),
  }
}

function messagesIn({ messages, isGivenFewer }: Line): string {
  if (messages.length === 0) return '–'
  const [least, most] = [Math.min(...messages), Math.max(...messages)]
  return `${least === most ? show(least, 0) : range({ min: least, max: most }, 0)}${isGivenFewer ? ' *' : ''}`
}

/** What has to be known to read the table. */
export function sentencesOf({ lines, cannot }: Result): readonly string[] {
  const isSomebodySlow = lines.some(({ isGivenFewer, messages }) => isGivenFewer && messages.length > 0)
  return [
    ...(isSomebodySlow
      ? ['* slow, and given fewer messages; a smaller backlog is the cheaper one, so this favours it']
      : []),
    ...Object.entries(cannot).map(([name, reason]) => `${name}: cannot: ${reason}`),
  ]
}

export function ratioTable(ratios: Ratios, missed = 'MISSED'): Table {
  const rows = (Object.keys(definitions) as RatioName[]).flatMap((name) => {
    const ratio = ratios[name]
    if (ratio === undefined) return []
    const { title, isMoreBetter } = definitions[name]
    const bar = `${isMoreBetter ? '≥' : '≤'} ${ratio.bar}`
    return [
      [
        title,
        show(ratio.value, 2),
        range(ratio.spread, 2),
        bar,
        ratio.isMet ? 'met' : missed,
        ratio.peer ?? '–',
      ],
    ]
  })
  return { head: ['', 'value', 'spread', 'bar', '', 'against'], rows }
}

/** Why there are figures that are missing, one sentence each. */
export function refusals(results: readonly Result[]): readonly string[] {
  return results.flatMap(({ scenario, lines }) =>
    lines.flatMap(({ contender, tuning, refused }) =>
      refused.map((reason) => `${scenario}: ${contender}, ${tuning}: not reported: ${reason}`),
    ),
  )
}

export function asText({ head, rows }: Table): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]!.length)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join('  ')
  return [head, ...rows].map(line).join('\n')
}

export function asMarkdown({ head, rows }: Table): string {
  const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'))
  return [head, rule, ...rows].map(line).join('\n')
}

function spread(values: readonly number[], digits: number): string {
  return values.length === 0 ? '–' : range(spreadOf(values), digits)
}

function range({ min, max }: { readonly min: number; readonly max: number }, digits: number): string {
  return `${show(min, digits)}–${show(max, digits)}`
}

function show(value: number, digits: number): string {
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
