import type { Part } from './cast.ts'
import type { Scenario } from './scenario.ts'

export interface PlanInput {
  readonly scenarios: readonly Scenario[]
  readonly rounds: number
  readonly isQuick: boolean
}

/** One round of a scenario: every contender once, or those that are still in it. */
export interface Heat {
  readonly scenario: Scenario
  readonly round: number
}

/** Who would need longer for a backlog, at its pace, is given fewer messages, ... */
const patienceSeconds = { full: 15, quick: 2 }
/** ... that keep it busy for so long. */
const busySeconds = { full: 4, quick: 1 }
/** Of fewer there is no rate. */
const fewest = 6

export function messagesOf(scenario: Scenario, part: Part, isQuick: boolean): number {
  const wanted = (isQuick ? scenario.quick?.messages : undefined) ?? scenario.messages
  if (scenario.paceOf === undefined) return wanted
  const pace = scenario.paceOf(part)
  const mode = isQuick ? 'quick' : 'full'
  if (wanted <= pace * patienceSeconds[mode]) return wanted
  return Math.min(wanted, Math.max(fewest, Math.ceil(pace * busySeconds[mode])))
}

/** Who takes part in it. */
export function partsIn({ scenario: { cast, peerRounds = Infinity }, round }: Heat): readonly Part[] {
  return cast.filter(({ contender }) => contender.kind === 'ours' || round < peerRounds)
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

export function costsOf(heat: Heat, isQuick: boolean): Costs {
  const { scenario, round } = heat
  const parts = partsIn(heat)
  const secondsOf = (part: Part): number => scenario.seconds(part, messagesOf(scenario, part, isQuick))
  const work = parts.reduce((sum, part) => sum + secondsOf(part), 0)
  return { round, starts: parts.length * startSeconds, work }
}

/** `share`: of the messages. */
export function minutesOf(costs: readonly Costs[], share = 1): number {
  return costs.reduce((sum, { starts, work }) => sum + starts + work * share, 0) / 60
}
