import { contenderNamed } from '../contenders/catalogue.ts'
import { type Line, type MetricName, type Result, valuesOf } from './metrics.ts'
import { percentile, spreadOf } from './statistics.ts'

export interface Ratio {
  readonly value: number
  /** At least, or at most, depending on what it is. */
  readonly bar: number
  readonly isMet: boolean
  /** The contender that it is a ratio to; null: a figure by itself. */
  readonly peer: string | null
  /** Round by round. */
  readonly spread: { readonly min: number; readonly max: number }
  /** What the ratio is of, as medians. */
  readonly figures: { readonly ours: number; readonly theirs: number | null }
  /** Where publishing is measured and `peer` cannot do it in the application's transaction: the ratio to the best of those that can. */
  readonly inTransaction: { readonly value: number; readonly peer: string } | null
}

interface Definition {
  readonly title: string
  readonly scenario: string
  readonly metric: MetricName
  readonly bar: number
  readonly isMoreBetter: boolean
  /** Whom it is compared with: the best of them is 1. Not given: nobody, the figure itself counts. */
  readonly against?: (line: Line) => boolean
}

const isPeer = (line: Line): boolean => contenderNamed(line.contender).kind === 'peer'
const notifies = (line: Line): boolean => isPeer(line) && contenderNamed(line.contender).notifies
const isLimit = (line: Line): boolean => contenderNamed(line.contender).kind === 'limit'
const more = { isMoreBetter: true } as const
const less = { isMoreBetter: false } as const

export const definitions = {
  drainNoop: {
    title: 'drain, handlers do nothing',
    scenario: 'drain-noop',
    metric: 'perSecond',
    bar: 2.5,
    ...more,
    against: isPeer,
  },
  drainDefaults: {
    title: 'the same, everybody at defaults',
    scenario: 'drain-defaults',
    metric: 'perSecond',
    bar: 3,
    ...more,
    against: isPeer,
  },
  publishMany: {
    title: 'publish many',
    scenario: 'publish-many',
    metric: 'perSecond',
    bar: 2.5,
    ...more,
    against: isPeer,
  },
  walPerMessage: {
    title: 'WAL bytes, publish to ack',
    scenario: 'drain-noop',
    metric: 'walBytes',
    bar: 0.55,
    ...less,
    against: isPeer,
  },
  idleP50: {
    title: 'latency while idle, p50',
    scenario: 'idle-latency',
    metric: 'p50Ms',
    bar: 1,
    ...less,
    against: isPeer,
  },
  idleP99: {
    title: 'latency while idle, p99',
    scenario: 'idle-latency',
    metric: 'p99Ms',
    bar: 1,
    ...less,
    against: isPeer,
  },
  publish64VsPlain: {
    title: 'publish by 64, to plain inserts',
    scenario: 'publish-64',
    metric: 'perSecond',
    bar: 0.85,
    ...more,
    against: isLimit,
  },
  publish64VsPeer: {
    title: 'publish by 64, to peers that notify',
    scenario: 'publish-64',
    metric: 'perSecond',
    bar: 2,
    ...more,
    against: notifies,
  },
  pinnedXmin: {
    title: 'pinned xmin, last third to first',
    scenario: 'pinned-xmin',
    metric: 'lastToFirst',
    bar: 0.9,
    ...more,
  },
  pinnedXminP99Ms: {
    title: 'pinned xmin, p99 of the last, ms',
    scenario: 'pinned-xmin',
    metric: 'p99Ms',
    bar: 50,
    ...less,
  },
  drainVsFloor: {
    title: 'drain, to the floor',
    scenario: 'drain-noop',
    metric: 'perSecond',
    bar: 0.45,
    ...more,
    against: isLimit,
  },
  timerP99Ms: { title: 'timers, p99 after due, ms', scenario: 'timers', metric: 'p99Ms', bar: 20, ...less },
  fourProcesses: {
    title: 'drain by 4 processes, to 1',
    scenario: 'four-processes',
    metric: 'fourToOne',
    bar: 1,
    ...more,
  },
  heapMb: {
    title: 'heap while a million drain, MB',
    scenario: 'million',
    metric: 'peakHeapMb',
    bar: 150,
    ...less,
  },
} as const satisfies Record<string, Definition>

export type RatioName = keyof typeof definitions
export type Ratios = Readonly<Partial<Record<RatioName, Ratio>>>

/** Those that the run has measured. */
export function ratiosOf(results: readonly Result[]): Ratios {
  const found = Object.entries(definitions).map(([name, definition]) => [name, ratioOf(definition, results)])
  return Object.fromEntries(found.filter(([, ratio]) => ratio !== null))
}

function ratioOf(definition: Definition, results: readonly Result[]): Ratio | null {
  const { scenario, metric, against } = definition
  const result = results.find((one) => one.scenario === scenario)
  const lines = result?.lines ?? []
  const isOurs = ({ contender }: Line): boolean => contenderNamed(contender).kind === 'ours'
  const ours = best(lines.filter(isOurs), definition)
  if (ours === null) return null
  if (against === undefined) return judge(definition, { ours, theirs: null, lines })
  const theirs = best(lines.filter(against), definition)
  if (theirs === null) return null
  const ratio = judge(definition, { ours, theirs, lines })
  if (!result!.isPublishing || isTransactional(theirs)) return ratio
  const able = best(lines.filter(against).filter(isTransactional), definition)
  if (able === null) return ratio
  const value = percentile(ratiosTo(able, ours, metric), 50)
  return { ...ratio, inTransaction: { value, peer: nameOf(able, lines) } }
}

const isTransactional = ({ contender }: Line): boolean => contenderNamed(contender).isTransactional

/** By the median of its rounds; null when none of them has a figure. */
function best(lines: readonly Line[], { metric, isMoreBetter }: Definition): Line | null {
  const sign = isMoreBetter ? -1 : 1
  const measured = lines.filter((line) => valuesOf(line, metric).length > 0)
  return measured.toSorted((a, b) => sign * (medianOf(a, metric) - medianOf(b, metric)))[0] ?? null
}

function medianOf(line: Line, metric: MetricName): number {
  return percentile(valuesOf(line, metric), 50)
}

/** Rounds belong together when none is missing; else each of ours is held against their median. */
function ratiosTo(theirs: Line, ours: Line, metric: MetricName): readonly number[] {
  const [own, other] = [valuesOf(ours, metric), valuesOf(theirs, metric)]
  const isPaired = own.length === other.length
  return own.map((value, round) => value / (isPaired ? other[round]! : percentile(other, 50)))
}

/** With its tuning where it ran at several. */
function nameOf({ contender, tuning }: Line, lines: readonly Line[]): string {
  const isTwice = lines.some((line) => line.contender === contender && line.tuning !== tuning)
  return isTwice ? `${contender} (${tuning})` : contender
}

interface Match {
  readonly ours: Line
  readonly theirs: Line | null
  readonly lines: readonly Line[]
}

function judge({ metric, bar, isMoreBetter }: Definition, { ours, theirs, lines }: Match): Ratio {
  const values = theirs === null ? valuesOf(ours, metric) : ratiosTo(theirs, ours, metric)
  const { median: value, min, max } = spreadOf(values)
  return {
    value,
    bar,
    isMet: isMoreBetter ? value >= bar : value <= bar,
    peer: theirs === null ? null : nameOf(theirs, lines),
    spread: { min, max },
    figures: { ours: medianOf(ours, metric), theirs: theirs === null ? null : medianOf(theirs, metric) },
    inTransaction: null,
  }
}
