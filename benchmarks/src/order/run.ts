import { drains, measureDrain } from './drain.ts'
import { measurePublish, publishers } from './publish.ts'
import { type Cost, startTimingServer, type TimingServer } from './server.ts'

export interface OrderWish {
  readonly messages: number
  readonly rounds: number
  /** Only those whose name contains it; null: all. */
  readonly only: string | null
}

interface Line {
  readonly name: string
  readonly messages: number
  readonly costs: readonly Cost[]
}

interface Measured {
  readonly name: string
  measure(server: TimingServer, messages: number): Promise<Cost>
}

/** Round by round, all of them in turn: a machine that is busy for a while is so for all. Prints the medians. */
export async function runOrder({ messages, rounds, only }: OrderWish): Promise<number> {
  await using server = await startTimingServer()
  const chosen = all.filter(({ name }) => only === null || name.includes(only))
  const lines: Line[] = chosen.map(({ name }) => ({ name, messages, costs: [] }))
  for (let round = 0; round < rounds; round++) {
    for (const [index, { measure }] of chosen.entries()) {
      const line = lines[index]!
      lines[index] = { ...line, costs: [...line.costs, await measure(server, messages)] }
    }
  }
  console.log(`${server.version}, ${messages} messages, medians of ${rounds} rounds\n`)
  console.log(renderLines(lines))
  return 0
}

const all: readonly Measured[] = [
  ...drains.map((drain) => ({
    name: `drain: ${drain.name}`,
    measure: (server: TimingServer, messages: number) => measureDrain(server, drain, messages),
  })),
  ...publishers.map((publisher) => ({
    name: `publish: ${publisher.name}`,
    measure: (server: TimingServer, messages: number) => measurePublish(server, publisher, messages),
  })),
]

function renderLines(lines: readonly Line[]): string {
  const width = Math.max(...lines.map(({ name }) => name.length))
  const rows = lines.map(({ name, messages, costs }) => {
    const perSecond = costs.map(({ ms }) => (messages / ms) * 1_000)
    const figures = [
      median(perSecond).toFixed(0),
      Math.max(...perSecond).toFixed(0),
      ((median(costs.map(({ cpuMs }) => cpuMs)) / messages) * 1_000).toFixed(0),
      (median(costs.map(({ statements }) => statements)) / messages).toFixed(3),
      (median(costs.map(({ walBytes }) => walBytes)) / messages).toFixed(0),
    ]
    return `${name.padEnd(width)} ${figures.map((figure) => figure.padStart(11)).join('')}`
  })
  const head = ['messages/s', 'best', 'CPU µs', 'statements', 'WAL bytes']
    .map((word) => word.padStart(11))
    .join('')
  return [`${''.padEnd(width)} ${head}`, ...rows].join('\n')
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
