import type { Result } from './metrics.ts'
import type { Report } from './report.ts'
import {
  asText,
  circumstancesOf,
  ratioSentences,
  ratioTable,
  refusals,
  resultTables,
  sentencesOf,
  wrapped,
} from './tables.ts'

/** Of a terminal. */
export const columns = 100

/** What is printed: a paragraph for each scenario, the bars at the end, where they are seen. */
export function textOf({ machine, server, node, settings, ratios, results }: Report): string {
  const given = Object.entries(settings).map(([name, value]) => `${name}=${value}`)
  const hasBars = Object.keys(ratios).length > 0
  return [
    folded(`${server}, ${node}, ${machine}. ${given.join(', ')}`),
    ...results.map(paragraphOf),
    ...refusals(results).map(folded),
    ...(hasBars ? [asText(ratioTable(ratios))] : []),
    ratioSentences(ratios).map(folded).join('\n'),
  ].join('\n\n')
}

function paragraphOf(result: Result): string {
  const { title, scenario } = result
  const tables = resultTables(result).map(([name, table], index) =>
    index === 0 ? asText(table) : `\n${name}\n${asText(table)}`,
  )
  return [
    folded(`${title} (${scenario}: ${circumstancesOf(result)})`),
    ...tables,
    ...sentencesOf(result).map(folded),
  ].join('\n')
}

function folded(text: string): string {
  return wrapped(text, columns).join('\n')
}
