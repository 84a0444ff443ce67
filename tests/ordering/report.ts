import type { Rule, Verdict, Violation } from './history.ts'
import type { Played } from './scenario.ts'

const shown = 10

export function countByRule(violations: readonly Violation[]): Readonly<Partial<Record<Rule, number>>> {
  const counts: Partial<Record<Rule, number>> = {}
  for (const { rule } of violations) counts[rule] = (counts[rule] ?? 0) + 1
  return counts
}

/** What a run came to, in a few lines, with the first of the violations. */
export function describeVerdict({ history, deadlocks }: Played, { violations, excused }: Verdict): string {
  const { commits, runs, absences } = history
  const killed = absences.filter(({ to }) => to === null).length
  return [
    `${commits.length} messages, ${history.told.rolledBack.length} rolled back, ${deadlocks} deadlocks, ${runs.length} runs`,
    `${killed} processes killed, ${absences.length - killed} stood still`,
    `excused: ${JSON.stringify(countByRule(excused))}, violations: ${JSON.stringify(countByRule(violations))}`,
    ...violations.slice(0, shown).map(({ rule, key, text }) => `${rule}, ${key ?? 'no key'}: ${text}`),
  ].join('\n')
}
