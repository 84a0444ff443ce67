import type { Settings } from '../contenders/catalogue.ts'

/** Everything that a run may measure, in the order of the tables. `digits` are those behind the point. */
export const metrics = {
  perSecond: { title: 'messages/s', digits: 0 },
  p50Ms: { title: 'p50 ms', digits: 2 },
  p99Ms: { title: 'p99 ms', digits: 2 },
  oneProcess: { title: '1 process, messages/s', digits: 0 },
  fourProcesses: { title: '4 processes, messages/s', digits: 0 },
  fourToOne: { title: '4 : 1', digits: 2 },
  rate1: { title: '1st quarter, messages/s', digits: 0 },
  rate2: { title: '2nd', digits: 0 },
  rate3: { title: '3rd', digits: 0 },
  rate4: { title: '4th', digits: 0 },
  lastToFirst: { title: '4th : 1st', digits: 2 },
  p99Ms1: { title: 'p99 ms of the 1st', digits: 2 },
  p99Ms2: { title: 'of the 2nd', digits: 2 },
  p99Ms3: { title: 'of the 3rd', digits: 2 },
  deadAtEnd: { title: 'dead rows at the end', digits: 0 },
  recoveryMs: { title: 'recovered after ms', digits: 0 },
  statements: { title: 'statements', digits: 3 },
  transactions: { title: 'transactions', digits: 3 },
  walBytes: { title: 'WAL bytes', digits: 0 },
  deadRows: { title: 'dead rows', digits: 2 },
  hotShare: { title: 'HOT', digits: 2 },
  databaseCpuUs: { title: 'database CPU µs', digits: 0 },
  nodeCpuUs: { title: 'Node CPU µs', digits: 0 },
  peakRssMb: { title: 'RSS MB', digits: 0 },
  peakHeapMb: { title: 'heap MB', digits: 0 },
} as const satisfies Record<string, { readonly title: string; readonly digits: number }>

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
  /** Who is not in it and why. */
  readonly cannot: Readonly<Record<string, string>>
  readonly lines: readonly Line[]
}

/** Of the rounds that have it. */
export function valuesOf(line: Line, metric: MetricName): readonly number[] {
  return line.rounds.map((round) => round[metric]).filter((value) => typeof value === 'number')
}
