import { parseArgs } from 'node:util'
import type { Sabotage } from './sabotage.ts'
import { sabotages } from './sabotage.ts'

export interface Run {
  readonly kind: 'run'
  /** Null: until Ctrl-C. */
  readonly forMs: number | null
  /** Null: the shop is honest. */
  readonly sabotage: Sabotage | null
}

export type Wish = Run | { readonly kind: 'help' } | { readonly kind: 'mistake'; readonly sentence: string }

export const help = `A small shop that sells through a transactional outbox, and counts afterwards.

  npm run demo                  until Ctrl-C; 20 s when not in a terminal
  npm run demo -- --for 10s     10 seconds; also 500ms, 1m
  npm run demo -- --help        this text

It starts a PostgreSQL server of its own and removes it at the end. With
DATABASE_URL it uses that server instead, in a schema of its own that it drops
at the end.

Ctrl-C closes the shop: what waits is delivered, then the books are checked.
A second Ctrl-C skips both.

SHOP_SABOTAGE breaks the shop on purpose, so that checks fail:
${sabotages.map(({ name, effect }) => `  ${name.padEnd(30)}${effect}`).join('\n')}

Exit code 0: every check holds; 1: one does not, or the shop failed; 2: bad
arguments or settings; 130: a second Ctrl-C.`

const aDuration = 'a duration such as 500ms, 10s or 1m, up to 24 hours'
const unitMs = { ms: 1, s: 1_000, m: 60_000 } as const
const longestMs = 24 * 60 * 60_000

interface Given {
  readonly args: readonly string[]
  /** The value of SHOP_SABOTAGE. */
  readonly sabotage: string | undefined
  readonly isTerminal: boolean
}

export function readArguments({ args, sabotage, isTerminal }: Given): Wish {
  try {
    const options = { for: { type: 'string' }, help: { type: 'boolean', short: 'h' } } as const
    const { values } = parseArgs({ args: [...args], options })
    if (values.help) return { kind: 'help' }
    const run: Run = { kind: 'run', forMs: isTerminal ? null : 20_000, sabotage: null }
    const timed = values.for === undefined ? run : runFor(run, values.for)
    return timed.kind === 'run' && sabotage ? sabotaged(timed, sabotage) : timed
  } catch (error) {
    return { kind: 'mistake', sentence: sentenceOf((error as Error).message) }
  }
}

function sentenceOf(message: string): string {
  if (message.startsWith("Option '--for")) return `expected \`--for\` to be followed by ${aDuration}`
  // Node's first sentence says what is wrong, the second how to pass positional arguments, of which there are none.
  return message.split(/\.\s/)[0] ?? message
}

function runFor(run: Run, text: string): Wish {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text) ?? []
  const forMs = Number(amount) * unitMs[unit as keyof typeof unitMs]
  if (forMs > 0 && forMs <= longestMs) return { ...run, forMs }
  return { kind: 'mistake', sentence: `expected \`--for\` to be ${aDuration}, got \`${text}\`` }
}

/** A misspelt one would break nothing, and the checks that hold would prove nothing. */
function sabotaged(run: Run, name: string): Wish {
  const sabotage = sabotages.find((known) => known.name === name)
  if (sabotage !== undefined) return { ...run, sabotage }
  const names = sabotages.map((known) => `\`${known.name}\``).join(', ')
  return { kind: 'mistake', sentence: `expected \`SHOP_SABOTAGE\` to be one of ${names}, got \`${name}\`` }
}
