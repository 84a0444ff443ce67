import type { Part } from './cast.ts'
import type { Scenario } from './scenario.ts'

export interface PlanInput {
  readonly scenarios: readonly Scenario[]
  readonly rounds: number
  readonly isQuick: boolean
}

/** One round of a scenario: every contender once. */
export interface Heat {
  readonly scenario: Scenario
  readonly round: number
}

/** How long a contender is to be busy with a backlog, at its pace. */
const busySeconds = { full: 4, quick: 1 }
/** Of fewer there is no rate. */
const fewest = 20

export function messagesOf(scenario: Scenario, { pace }: Part, isQuick: boolean): number {
  const wanted = (isQuick ? scenario.quick?.messages : undefined) ?? scenario.messages
  if (!scenario.isPaced) return wanted
  const seconds = isQuick ? busySeconds.quick : busySeconds.full
  return Math.min(wanted, Math.max(fewest, Math.ceil(pace * seconds)))
}

/** A full run takes scenario after scenario; a quick one round after round, so that what there is no time for is another round of all. */
export function heatsOf({ scenarios, rounds, isQuick }: PlanInput): readonly Heat[] {
  const roundsOf = (scenario: Scenario): number => {
    const own = (isQuick ? scenario.quick?.rounds : undefined) ?? scenario.rounds ?? rounds
    return Math.min(own, rounds)
  }
  const heats = scenarios.flatMap((scenario) =>
    Array.from({ length: roundsOf(scenario) }, (_, round): Heat => ({ scenario, round })),
  )
  return isQuick ? heats.toSorted((a, b) => a.round - b.round) : heats
}

/** Of a process, a database and a connection, for every contender. */
export const startSeconds = 1.5

export interface Costs {
  readonly round: number
  /** Seconds, roughly, that do not depend on the messages. */
  readonly starts: number
  /** Seconds, roughly, that do. */
  readonly work: number
}

export function costsOf({ scenario, round }: Heat, isQuick: boolean): Costs {
  const { cast, seconds } = scenario
  const work = cast.reduce((sum, part) => sum + seconds(part, messagesOf(scenario, part, isQuick)), 0)
  return { round, starts: cast.length * startSeconds, work }
}

/** `share`: of the messages. */
export function minutesOf(costs: readonly Costs[], share = 1): number {
  return costs.reduce((sum, { starts, work }) => sum + starts + work * share, 0) / 60
}
