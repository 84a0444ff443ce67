import { parseArgs } from 'node:util'

export type Wish =
  /** `forMs` null: until Ctrl-C. */
  | { readonly kind: 'run'; readonly forMs: number | null }
  | { readonly kind: 'help' }
  | { readonly kind: 'mistake'; readonly sentence: string }

export const help = `A small shop that sells through a transactional outbox, and counts afterwards.

  npm run demo                  until Ctrl-C; 20 s when not in a terminal
  npm run demo -- --for 10s     10 seconds; also 500ms, 1m
  npm run demo -- --help        this text

It starts a PostgreSQL server of its own and removes it at the end. With
DATABASE_URL it uses that server instead, in a schema of its own that it drops
at the end.

Ctrl-C closes the shop: what waits is delivered, then the books are checked.
A second Ctrl-C skips both.

Exit code 0: every check holds; 1: one does not, or the shop failed; 2: bad
arguments; 130: a second Ctrl-C.`

const aDuration = 'a duration such as 500ms, 10s or 1m, up to 24 hours'
const unitMs = { ms: 1, s: 1_000, m: 60_000 } as const
const longestMs = 24 * 60 * 60_000

export function readArguments(given: readonly string[], isTerminal: boolean): Wish {
  try {
    const options = { for: { type: 'string' }, help: { type: 'boolean', short: 'h' } } as const
    const { values } = parseArgs({ args: [...given], options })
    if (values.help) return { kind: 'help' }
    if (values.for !== undefined) return runFor(values.for)
    return { kind: 'run', forMs: isTerminal ? null : 20_000 }
  } catch (error) {
    return { kind: 'mistake', sentence: sentenceOf((error as Error).message) }
  }
}

function sentenceOf(message: string): string {
  if (message.startsWith("Option '--for")) return `expected \`--for\` to be followed by ${aDuration}`
  // Node's first sentence says what is wrong, the second how to pass positional arguments, of which there are none.
  return message.split(/\.\s/)[0] ?? message
}

function runFor(text: string): Wish {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text) ?? []
  const forMs = Number(amount) * unitMs[unit as keyof typeof unitMs]
  if (forMs > 0 && forMs <= longestMs) return { kind: 'run', forMs }
  return { kind: 'mistake', sentence: `expected \`--for\` to be ${aDuration}, got \`${text}\`` }
}
