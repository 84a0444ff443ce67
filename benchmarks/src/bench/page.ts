import { contenderNamed, contenders } from '../contenders/catalogue.ts'
import { type Bar, barChart } from './chart.ts'
import { type Line, type MetricName, metrics, type Result, valuesOf } from './metrics.ts'
import type { Report } from './report.ts'
import { percentile, spreadOf } from './statistics.ts'
import {
  asMarkdown,
  circumstancesOf,
  labelOf,
  ratioSentences,
  ratioTable,
  refusals,
  resultTables,
  sentencesOf,
  show,
} from './tables.ts'

/** `docs/benchmarks.md`; its charts lie beside it, in `benchmarks/`. */
export function pageOf(report: Report): string {
  return `${[
    '# Benchmarks',
    '> Written by `npm run bench`. Do not edit: run it again.',
    'How fast Postbox is, and what a message costs, beside other queues on Postgres: measured in one run, on one machine, on the same database server.',
    `## In short\n\n${shortOf(report)}`,
    `## What was measured\n\n${aboutOf(report)}`,
    `## Run it yourself\n\n${rerun}`,
    ...refusalsOf(report),
    ...report.results.map(sectionOf),
    `## Settings\n\n${settingsOf(report)}`,
  ].join('\n\n')}\n`
}

function shortOf({ ratios }: Report): string {
  const all = Object.values(ratios)
  const missed = all.filter(({ isMet }) => !isMet).length
  const verdict =
    missed === 0
      ? `All ${all.length} bars are met.`
      : `**${missed} of ${all.length} bars are missed**: by how much, and against whom, is said below the table.`
  const sentences = ratioSentences(ratios).map((sentence) => `- ${sentence}.`)
  return [
    'Each line is held against a bar that was set before. With a name in the last column it is a ratio to that contender, which is the best of its kind, round by round; else it is the figure itself. The value is the median of the rounds.',
    verdict,
    asMarkdown(ratioTable(ratios, '**MISSED**')),
    ...(sentences.length === 0 ? [] : [sentences.join('\n')]),
  ].join('\n\n')
}

function aboutOf({ startedAt, rounds, machine, node, server, versions }: Report): string {
  const peers = new Set(contenders.filter(({ kind }) => kind === 'peer').map(({ driver }) => driver))
  const list = [...peers].map((name) => `${name} ${versions[name]}`).join(', ')
  const loners = [
    ...new Set(contenders.filter(({ isTransactional }) => !isTransactional).map(({ driver }) => driver)),
  ]
  return [
    `- **When and where**: ${startedAt.slice(0, 10)}, ${machine}, for the database and everybody else; ${server}, ${node}.`,
    `- **Who**: Postbox, ${list}; at defaults, or as their authors tune them ([settings](#settings)). The *floor* is no queue: insert, read in order, delete the range, for one consumer and no failure. Nothing on a table can do with less; its insert is the plain insert of an application.`,
    `- **How**: ${rounds} rounds of what a bar is held against, fewer of the rest and one where a run takes minutes; all contenders in turn in each of them, every run in a process and a database of its own, after a checkpoint. Figures are medians, with the lowest and the highest beside the first. A rate counts from when a third is done: nobody is charged with starting, or with being compiled.`,
    '- **Exact or not at all**: every message carries a number and is counted. A run whose messages were not each handled exactly as often as they should have been is not reported.',
    `- **In the transaction of the application**: an outbox is there for a message to be committed with what it is about, or not at all. Everybody publishes in the caller's transaction, but for ${loners.join(' and ')}, which cannot: it commits by itself, and is marked † where publishing is measured.`,
    '- **Costs** are per message: statements, commits, bytes of WAL (of a drain: with publishing), row versions left behind, the share of updates that were HOT, processor time of the database and of Node. Memory is the highest that was seen. Bodies are 256 bytes of JSON.',
  ].join('\n')
}

const rerun = `\`\`\`sh
npm run bench                                                  # everything, and this page
npm run bench -- --quick                                       # the main figures, in less than three minutes
npm run bench -- --only drain-noop --peers postbox,pg-boss     # a part; one contender alone, if you like
npm run bench -- --only drain-noop --try 'pg-boss={"work":{"batchSize":500}}'   # your tuning beside ours
\`\`\`

A server is started for it, and the peers are installed, when it is first needed; \`--database\` takes an empty database of yours instead.`

function sectionOf(result: Result): string {
  const { title, scenario, about } = result
  const sentences = sentencesOf(result).map((sentence) => `- ${sentence.replace(/^\*/, '\\*')}`)
  return [
    `## ${title}`,
    `\`${scenario}\`, ${circumstancesOf(result)}. ${about}`,
    `![${title}](benchmarks/${scenario}.svg)`,
    ...resultTables(result).flatMap(([name, table]) =>
      name === '' ? [asMarkdown(table)] : [`${name}:`, asMarkdown(table)],
    ),
    ...(sentences.length === 0 ? [] : [sentences.join('\n')]),
  ].join('\n\n')
}

function refusalsOf({ results }: Report): readonly string[] {
  const lines = refusals(results)
  return lines.length === 0 ? [] : [`## Not reported\n\n${lines.map((line) => `- ${line}`).join('\n')}`]
}

function settingsOf({ settings, results }: Report): string {
  const server = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  const present = new Set(results.flatMap(({ lines }) => lines.map(({ contender }) => contender)))
  const tunings = contenders
    .filter(({ name }) => present.has(name))
    .map(
      ({ name, tuned, source, isTransactional }) =>
        `- **${name}**: \`${JSON.stringify(tuned)}\`\\\n  ${source}.${isTransactional ? '' : " It cannot publish in the application's transaction."}`,
    )
  return [
    `The server: ${server.join(', ')}. No checkpoint happens during a run.`,
    'At defaults a contender is given nothing but the connection. Tuned:',
    tunings.join('\n'),
  ].join('\n\n')
}

/** The SVG of each scenario, by its file's name. */
export function chartsOf({ results }: Report): ReadonlyMap<string, string> {
  return new Map(results.map((result) => [`${result.scenario}.svg`, chartOf(result)]))
}

/** What is shown in brackets beside the figure, where one alone says too little. */
const companions: Partial<Record<MetricName, readonly [name: MetricName, title: string]>> = {
  p99Ms: ['p50Ms', 'p50'],
  fourProcesses: ['oneProcess', 'by 1:'],
}

function chartOf(result: Result): string {
  const { title, figure, isMoreBetter, isPublishing, lines } = result
  const measured = lines.filter((line) => valuesOf(line, figure).length > 0)
  const bars = measured.map((line): Bar => {
    const { median: value, min, max } = spreadOf(valuesOf(line, figure))
    const { kind } = contenderNamed(line.contender)
    const label = labelOf(line, { lines: measured, isPublishing })
    return { label, value, min, max, text: textOf(line, figure), kind }
  })
  const sorted = bars.toSorted((a, b) => (isMoreBetter ? b.value - a.value : a.value - b.value))
  const unit = [
    `${metrics[figure].title}: ${isMoreBetter ? 'more' : 'less'} is better`,
    ...(measured.some(({ rounds }) => rounds.length > 1)
      ? ['the line is from the lowest round to the highest']
      : []),
    ...(bars.some(({ label }) => label.endsWith('†')) ? ['† commits by itself'] : []),
  ]
  return barChart({ title, unit: unit.join('; '), bars: sorted })
}

function textOf(line: Line, figure: MetricName): string {
  const shown = (name: MetricName): string => show(percentile(valuesOf(line, name), 50), metrics[name].digits)
  const [beside, title] = companions[figure] ?? []
  if (beside === undefined || valuesOf(line, beside).length === 0) return shown(figure)
  return `${shown(figure)} (${title} ${shown(beside)})`
}
