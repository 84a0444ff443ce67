import type { Part } from './cast.ts'
import type { MetricName, Metrics } from './metrics.ts'
import type { Stage } from './stage.ts'

export interface Scenario {
  readonly name: string
  readonly title: string
  /** What is done and what counts, for the page. */
  readonly about: string
  /** What the chart shows. */
  readonly figure: MetricName
  readonly isMoreBetter: boolean
  readonly cast: readonly Part[]
  /** Who is not in it and why, by the contender's name. */
  readonly cannot?: Readonly<Record<string, string>>
  readonly messages: number
  /** null: not in a quick run. */
  readonly quick: Quick | null
  /** Messages a second, roughly: who would need too long for all of them is given fewer. Not given: everybody has as many. */
  readonly paceOf?: (part: Part) => number
  /** Fewer than the run has, where one takes minutes. */
  readonly rounds?: number
  /** Of everybody but Postbox, where no bar is held against them. */
  readonly peerRounds?: number
  /** Publishing in the caller's transaction is what is measured, or part of it: who cannot is marked. */
  readonly isPublishing?: true
  /** How long a run with so many messages takes, roughly, beside what starting takes. */
  readonly seconds: (part: Part, messages: number) => number
  readonly run: (stage: Stage, messages: number) => Promise<Metrics>
}

export interface Quick {
  readonly messages: number
  /** Only Postbox: its bar is held against nobody. */
  readonly isAlone?: true
  readonly rounds?: number
}
