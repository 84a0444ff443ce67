import { parseArgs } from 'node:util'
import { contenderNames, scenarioNames, type Trial } from './bench/choose.ts'
import type { BenchWish } from './bench/run.ts'

export type Wish =
  | { readonly kind: 'counters'; readonly json: string | null; readonly update: boolean }
  | {
      readonly kind: 'order'
      readonly messages: number
      readonly rounds: number
      readonly only: string | null
    }
  | ({ readonly kind: 'bench' } & BenchWish)
  | { readonly kind: 'help' }
  | { readonly kind: 'mistake'; readonly sentence: string }

export const help = `What a message costs, measured on a PostgreSQL server that is started for it and removed at the end.

  counters                      statements, rows and WAL per message, compared with baseline.json
  counters --json <file>        the same, and everything that was measured as JSON
  counters --update             makes what is measured the new baseline
  order                         messages a second of ordered queues beside unordered ones, drained and published
  order --messages <n>          as many of them. Default: 50000
  order --rounds <n>            the median of as many rounds. Default: 3
  order --only <words>          only those whose name contains the words
  bench                         Postbox beside its peers: speed, latency, costs; writes docs/benchmarks.md and results/
  bench --quick                 the main figures, in less than three minutes
  bench --json                  prints one object, with the bars as \`ratios\`, instead of tables
  bench --only <scenarios>      ${scenarioNames.join(', ')}
  bench --peers <contenders>    ${contenderNames.join(', ')}
  bench --rounds <n>            the median of as many rounds. Default: 5; a quick run stops when its time is over
  bench --try <name>=<json>     settings of your own beside ours: pg-boss={"work":{"batchSize":500}}. May be repeated
  bench --share <number>        of the messages: 0.01 to see that everything works
  bench --page <folder>         the page and its charts, of this run, into a folder
  bench --database <url>        an empty database of a server of yours, on which others are made and dropped

Exit code 0: nothing costs more than the baseline, no message was lost; 1: something does or was, or the measurement failed; 2: bad arguments.`

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const

const benchOptions = {
  quick: flag,
  json: flag,
  only: text,
  peers: text,
  rounds: text,
  share: text,
  try: { type: 'string', multiple: true },
  page: text,
  database: text,
} as const

const commands = { counters: readCounters, order: readOrder, bench: readBench } satisfies Record<
  string,
  (given: string[]) => Wish
>

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

function readOrder(given: string[]): Wish {
  const { values } = parseArgs({ args: given, options: { messages: text, rounds: text, only: text } })
  const messages = Number(values.messages ?? 50_000)
  const rounds = Number(values.rounds ?? 3)
  for (const [name, value] of Object.entries({ messages, rounds })) {
    if (!Number.isInteger(value) || value < 1) return mistake(`expected a whole number for --${name}`)
  }
  return { kind: 'order', messages, rounds, only: values.only ?? null }
}

function readBench(given: string[]): Wish {
  const { values } = parseArgs({ args: given, options: benchOptions })
  const rounds = Number(values.rounds ?? 5)
  const share = Number(values.share ?? 1)
  const only = namesIn(values.only)
  const peers = namesIn(values.peers)
  const trials = (values.try ?? []).map(trialIn)
  if (!Number.isInteger(rounds) || rounds < 1) return mistake('expected a whole number for --rounds')
  if (!(share > 0 && share <= 1)) return mistake('expected a number above 0 and up to 1 for --share')
  const stranger = only?.find((name) => !scenarioNames.includes(name))
  if (stranger !== undefined) return mistake(`expected scenarios for --only, got \`${stranger}\``)
  const unknown = peers?.find((name) => !contenderNames.includes(name))
  if (unknown !== undefined) return mistake(`expected contenders for --peers, got \`${unknown}\``)
  const odd = trials.find((trial) => typeof trial === 'string')
  if (odd !== undefined) return mistake(`expected a contender and settings as JSON for --try, got \`${odd}\``)
  const { quick: isQuick = false, json: isJson = false, page = null, database = null } = values
  const wish = { isQuick, isJson, only, peers, rounds, share, page, database }
  return { kind: 'bench', ...wish, trials: trials as Trial[] }
}

/** The text itself when it is none. */
function trialIn(text: string): Trial | string {
  const [, contender = '', json = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? []
  try {
    const settings = JSON.parse(json) as Trial['settings']
    return contenderNames.includes(contender) && typeof settings === 'object' ? { contender, settings } : text
  } catch {
    return text
  }
}

function namesIn(list: string | undefined): readonly string[] | null {
  return list?.split(',').map((name) => name.trim()) ?? null
}

function mistake(sentence: string): Wish {
  return { kind: 'mistake', sentence }
}
