import type { Settings } from '../contenders/catalogue.ts'

/** A table for each: what a scenario is about, how that went on, and what a message cost. */
export type Group = 'figures' | 'thirds' | 'costs'

interface Metric {
  readonly title: string
  /** Behind the point. */
  readonly digits: number
  readonly group: Group
}

const figures = { group: 'figures' } as const
const thirds = { group: 'thirds' } as const
const costs = { group: 'costs' } as const

/** Everything that a run may measure, in the order of the tables. */
export const metrics = {
  perSecond: { title: 'messages/s', digits: 0, ...figures },
  p50Ms: { title: 'p50 ms', digits: 2, ...figures },
  p99Ms: { title: 'p99 ms', digits: 2, ...figures },
  oneProcess: { title: 'messages/s by 1', digits: 0, ...figures },
  fourProcesses: { title: 'messages/s by 4', digits: 0, ...figures },
  fourToOne: { title: '4:1', digits: 2, ...figures },
  deadAtEnd: { title: 'dead rows at the end', digits: 0, ...figures },
  late: { title: 'left waiting', digits: 0, ...figures },
  recoveryMs: { title: 'recovered after ms', digits: 0, ...figures },
  peakRssMb: { title: 'RSS MB', digits: 0, ...figures },
  peakHeapMb: { title: 'heap MB', digits: 0, ...figures },
  rate1: { title: 'messages/s, 1st', digits: 0, ...thirds },
  rate2: { title: '2nd', digits: 0, ...thirds },
  rate3: { title: '3rd', digits: 0, ...thirds },
  lastToFirst: { title: '3rd:1st', digits: 2, ...thirds },
  p99Ms1: { title: 'p99 ms, 1st', digits: 2, ...thirds },
  p99Ms2: { title: '2nd', digits: 2, ...thirds },
  p99Ms3: { title: '3rd', digits: 2, ...thirds },
  statements: { title: 'statements', digits: 3, ...costs },
  transactions: { title: 'commits', digits: 3, ...costs },
  walBytes: { title: 'WAL bytes', digits: 0, ...costs },
  deadRows: { title: 'dead rows', digits: 2, ...costs },
  hotShare: { title: 'HOT', digits: 2, ...costs },
  databaseCpuUs: { title: 'database CPU µs', digits: 0, ...costs },
  nodeCpuUs: { title: 'Node CPU µs', digits: 0, ...costs },
} as const satisfies Record<string, Metric>

export type MetricName = keyof typeof metrics

/** Of one run. null: cannot be known on this server. */
export type Metrics = Readonly<Partial<Record<MetricName, number | null>>>

/** One contender at one tuning in one scenario: its figures, round by round. */
export interface Line {
  readonly contender: string
  readonly tuning: string
  /** What it was given beside the connection. */
  readonly settings: Settings
  /** How many messages it was given, round by round. */
  readonly messages: readonly number[]
  /** Fewer than others, because it is slow. */
  readonly isGivenFewer: boolean
  readonly rounds: readonly Metrics[]
  /** Why there are no figures, or not of every round. */
  readonly refused: readonly string[]
}

export interface Result {
  readonly scenario: string
  readonly title: string
  readonly about: string
  /** The one that it is about. */
  readonly figure: MetricName
  readonly isMoreBetter: boolean
  /** Publishing in the caller's transaction is measured. */
  readonly isPublishing: boolean
  /** Who is not in it and why. */
  readonly cannot: Readonly<Record<string, string>>
  readonly lines: readonly Line[]
}

/** Of the rounds that have it. */
export function valuesOf(line: Line, metric: MetricName): readonly number[] {
  return line.rounds.map((round) => round[metric]).filter((value) => typeof value === 'number')
}
