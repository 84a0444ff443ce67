import { parseArgs } from 'node:util'

export type Wish =
  /** `forMs` null: until Ctrl-C. */
  | { readonly kind: 'run'; readonly forMs: number | null }
  | { readonly kind: 'help' }
  | { readonly kind: 'mistake'; readonly sentence: string }

export const help = `A small shop that sells through a transactional outbox, and counts afterwards.

  npm run demo                    until Ctrl-C; 20 seconds when the output is not a terminal
  npm run demo -- --for 10s       10 seconds; also 500ms, 1m
  npm run demo -- --help          this text

It starts a PostgreSQL server of its own and removes it at the end. With DATABASE_URL it uses
that server instead, in a schema of its own that it drops at the end.

Ctrl-C closes the shop: what waits is delivered, then the books are checked. A second Ctrl-C
skips both. Exit code 0: every check holds; 1: one does not; 2: bad arguments.`

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
    // Node's first sentence says what is wrong; the ones after it are about positional arguments, of which we have none.
    const [sentence = ''] = (error as Error).message.split(/\.\s/)
    return { kind: 'mistake', sentence: sentence.replace(/\.$/, '') }
  }
}

function runFor(text: string): Wish {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text) ?? []
  const forMs = Number(amount) * unitMs[unit as keyof typeof unitMs]
  if (forMs > 0 && forMs <= longestMs) return { kind: 'run', forMs }
  const sentence = `expected \`--for\` to be a duration such as 500ms, 10s or 1m, up to 24 hours, got \`${text}\``
  return { kind: 'mistake', sentence }
}
