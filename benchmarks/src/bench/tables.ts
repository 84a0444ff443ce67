import { contenderNamed } from '../contenders/catalogue.ts'
import { type Group, type Line, type MetricName, metrics, type Result, valuesOf } from './metrics.ts'
import { definitions, type Ratio, type RatioName, type Ratios } from './ratios.ts'
import { percentile, spreadOf } from './statistics.ts'

export interface Table {
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const groupTitles: Readonly<Record<Group, string>> = {
  figures: '',
  thirds: 'By third of the run',
  costs: 'Costs per message',
}

/** A line for each contender. In the first table is what the scenario is about, with its spread; in others how that went on, and what it cost. */
export function resultTables(result: Result): readonly (readonly [title: string, Table])[] {
  const groups = Object.keys(groupTitles) as Group[]
  return groups.flatMap((group) => {
    const table = tableOf(result, group)
    return table === null ? [] : [[groupTitles[group], table] as const]
  })
}

/** null: nothing of it was measured. The first is there in any case, and names everybody. */
function tableOf(result: Result, group: Group): Table | null {
  const { lines, figure } = result
  const names = (Object.keys(metrics) as MetricName[]).filter((name) => metrics[name].group === group)
  const shown = names.filter((name) => lines.some((line) => valuesOf(line, name).length > 0))
  if (group !== 'figures') {
    if (shown.length === 0) return null
    return {
      head: ['', ...shown.map((name) => metrics[name].title)],
      rows: lines.map((line) => [labelOf(line, result), ...shown.map((name) => cellOf(line, name))]),
    }
  }
  const others = shown.filter((name) => name !== figure)
  const { title, digits } = metrics[figure]
  return {
    head: ['', 'messages', title, 'spread', ...others.map((name) => metrics[name].title)],
    rows: lines.map((line) => [
      labelOf(line, result),
      messagesIn(line),
      cellOf(line, figure),
      spread(valuesOf(line, figure), digits),
      ...others.map((name) => cellOf(line, name)),
    ]),
  }
}

/** Marked when it commits by itself where the others publish in the application's transaction. */
export function labelOf(line: Line, { lines, isPublishing }: Pick<Result, 'lines' | 'isPublishing'>): string {
  const name = isOneTuning(lines) ? line.contender : `${line.contender}, ${line.tuning}`
  return isPublishing && !contenderNamed(line.contender).isTransactional ? `${name} †` : name
}

/** Then it need not be said in every line. */
function isOneTuning(lines: readonly Line[]): boolean {
  return new Set(lines.map(({ tuning }) => tuning)).size <= 1
}

function cellOf(line: Line, name: MetricName): string {
  const values = valuesOf(line, name)
  return values.length === 0 ? '–' : show(percentile(values, 50), metrics[name].digits)
}

function messagesIn({ messages, isGivenFewer }: Line): string {
  if (messages.length === 0) return '–'
  const [least, most] = [Math.min(...messages), Math.max(...messages)]
  return `${least === most ? show(least, 0) : range({ min: least, max: most }, 0)}${isGivenFewer ? ' *' : ''}`
}

/** At which tuning, and how often. */
export function circumstancesOf({ lines }: Result): string {
  const most = Math.max(0, ...lines.map(({ rounds }) => rounds.length))
  const counts = new Set(lines.map(({ rounds }) => rounds.length).filter((count) => count > 0))
  const rounds = `${counts.size > 1 ? 'up to ' : ''}${most} round${most === 1 ? '' : 's'}`
  if (!isOneTuning(lines)) return rounds
  const [tuning = ''] = lines.map((line) => line.tuning)
  return `${tuning === 'defaults' ? 'everybody at defaults' : tuning}, ${rounds}`
}

/** What has to be known to read the table. */
export function sentencesOf({ lines, cannot, isPublishing }: Result): readonly string[] {
  const isSomebodySlow = lines.some(({ isGivenFewer, messages }) => isGivenFewer && messages.length > 0)
  const loners = isPublishing ? lines.filter((line) => !contenderNamed(line.contender).isTransactional) : []
  return [
    ...(isSomebodySlow
      ? ['* slow, and given fewer messages; a smaller backlog is the cheaper one, so this favours it']
      : []),
    ...(loners.length > 0 ? [`† ${alone}`] : []),
    ...Object.entries(cannot).map(([name, reason]) => `${name}: cannot: ${reason}`),
  ]
}

const alone =
  "cannot publish in the application's transaction: it commits by itself, and is spared BEGIN and COMMIT"

export function ratioTable(ratios: Ratios, missed = 'MISSED'): Table {
  const rows = ratiosIn(ratios).map(([name, ratio]) => {
    const { title, isMoreBetter } = definitions[name]
    const bar = `${isMoreBetter ? '≥' : '≤'} ${ratio.bar}`
    const against = `${ratio.peer ?? '–'}${ratio.inTransaction === null ? '' : ' †'}`
    const digits = ratio.value < 100 ? 2 : 0
    const verdict = ratio.isMet ? 'met' : missed
    return [title, show(ratio.value, digits), range(ratio.spread, digits), bar, verdict, against]
  })
  return { head: ['', 'value', 'spread', 'bar', '', 'against'], rows }
}

/** By how much each bar is missed and against whom, and what else has to be known to read them. */
export function ratioSentences(ratios: Ratios): readonly string[] {
  const all = ratiosIn(ratios)
  const beside = all.flatMap(([name, { inTransaction }]) =>
    inTransaction === null
      ? []
      : [`${definitions[name].title}: ${show(inTransaction.value, 2)} (${inTransaction.peer})`],
  )
  return [
    ...all.flatMap(([name, ratio]) => (ratio.isMet ? [] : [missing(name, ratio)])),
    ...(beside.length === 0 ? [] : [`† ${alone}. To the best that can: ${beside.join('; ')}`]),
  ]
}

function missing(name: RatioName, { value, bar, peer, figures: { ours, theirs } }: Ratio): string {
  const { title, metric } = definitions[name]
  const sentence = `${title}: missed, ${distance(value, bar)}`
  if (theirs === null) return sentence
  const { title: what, digits } = metrics[metric]
  const unit = what.replace(/^p\d+ /, '')
  return `${sentence}, against ${peer}: ${show(ours, digits)} to ${show(theirs, digits)} ${unit}`
}

/** In the order of the bars, not of the run. */
function ratiosIn(ratios: Ratios) {
  return (Object.keys(definitions) as RatioName[]).flatMap((name) => {
    const ratio = ratios[name]
    return ratio === undefined ? [] : [[name, ratio] as const]
  })
}

function distance(value: number, bar: number): string {
  const percent = Math.max(1, Math.round(Math.abs(value / bar - 1) * 100))
  if (value >= 2 * bar) return `${show(value / bar, value < 10 * bar ? 1 : 0)} times the bar`
  return `${percent} % ${value < bar ? 'below' : 'above'} the bar`
}

/** Why there are figures that are missing, one sentence each. */
export function refusals(results: readonly Result[]): readonly string[] {
  return results.flatMap(({ scenario, lines }) =>
    lines.flatMap(({ contender, tuning, refused }) =>
      refused.map((reason) => `${scenario}: ${contender}, ${tuning}: not reported: ${reason}`),
    ),
  )
}

/** A head up to this length is not broken. */
const shortTitle = 7

/** A head that is longer than what stands below it takes several lines: a terminal is 100 columns wide. */
export function asText({ head, rows }: Table): string {
  const widths = head.map((title, column) => {
    const words = title.split(' ').map(({ length }) => length)
    const least = title.length <= shortTitle ? title.length : Math.max(...words)
    return Math.max(least, ...rows.map((row) => row[column]!.length))
  })
  const heads = head.map((title, column) => wrapped(title, widths[column]!))
  const height = Math.max(...heads.map(({ length }) => length))
  const top = Array.from({ length: height }, (_, index) =>
    heads.map((lines) => lines[index - height + lines.length] ?? ''),
  )
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join('  ')
      .trimEnd()
  return [...top, ...rows].map(line).join('\n')
}

/** No word is cut: one that is longer has a line of its own. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}

export function asMarkdown({ head, rows }: Table): string {
  const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'))
  return [head, rule, ...rows].map(line).join('\n')
}

function spread(values: readonly number[], digits: number): string {
  return values.length < 2 ? '–' : range(spreadOf(values), digits)
}

function range({ min, max }: { readonly min: number; readonly max: number }, digits: number): string {
  return min === max ? '–' : `${show(min, digits)}–${show(max, digits)}`
}

/** One digit more of what would else be hardly more than a 0 or a 1. */
export function show(value: number, wanted: number): string {
  const digits = value < 10 && wanted === 0 && !Number.isInteger(value) ? 1 : wanted
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
