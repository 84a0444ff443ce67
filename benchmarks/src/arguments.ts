import { parseArgs } from 'node:util'

export type Wish =
  | { readonly kind: 'counters'; readonly json: string | null; readonly update: boolean }
  | { readonly kind: 'help' }
  | { readonly kind: 'mistake'; readonly sentence: string }

export const help = `What a message costs, measured on a PostgreSQL server that is started for it and removed at the end.

  counters                      statements, rows and WAL per message, compared with baseline.json
  counters --json <file>        the same, and everything that was measured as JSON
  counters --update             makes what is measured the new baseline

Exit code 0: nothing costs more than the baseline; 1: something does, or the measurement failed; 2: bad arguments.`

const commands = { counters: readCounters } satisfies Record<string, (given: string[]) => Wish>

/** The command comes first, and each has flags of its own: one command's flag is a mistake after another. */
export function readArguments(given: readonly string[]): Wish {
  const [command, ...rest] = given
  if (given.includes('--help') || given.includes('-h')) return { kind: 'help' }
  const known = Object.keys(commands).join(', ')
  if (command === undefined) return mistake(`expected a command (${known}), got none`)
  if (!isCommand(command)) return mistake(`expected a command (${known}), got \`${command}\``)
  try {
    return commands[command](rest)
  } catch (error) {
    // Node's first sentence says what is wrong; the second, how to pass positional arguments, of which there are none.
    return mistake((error as Error).message.split(/\.\s/)[0] ?? '')
  }
}

function isCommand(command: string): command is keyof typeof commands {
  return Object.hasOwn(commands, command)
}

function readCounters(given: string[]): Wish {
  const options = { json: { type: 'string' }, update: { type: 'boolean' } } as const
  const { values } = parseArgs({ args: given, options })
  return { kind: 'counters', json: values.json ?? null, update: values.update ?? false }
}

function mistake(sentence: string): Wish {
  return { kind: 'mistake', sentence }
}
