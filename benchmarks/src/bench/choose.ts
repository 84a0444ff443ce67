import { contenderNamed, contenders, type Settings } from '../contenders/catalogue.ts'
import { type Part, partOf } from './cast.ts'
import type { Scenario } from './scenario.ts'
import { scenarios } from './scenarios.ts'

/** Settings of somebody's own, to be measured beside ours. */
export interface Trial {
  readonly contender: string
  readonly settings: Settings
}

export interface Choice {
  readonly isQuick: boolean
  readonly only: readonly string[] | null
  readonly peers: readonly string[] | null
  readonly trials: readonly Trial[]
}

export const scenarioNames: readonly string[] = scenarios.map(({ name }) => name)
export const contenderNames: readonly string[] = contenders.map(({ name }) => name)

/** Slower than this, in messages a second, is not waited for in a quick run. */
const quickPace = 100

/** A scenario of which nobody is left is left out. */
export function chooseScenarios({ isQuick, only, peers, trials }: Choice): readonly Scenario[] {
  return scenarios
    .filter(({ name, quick }) => (only === null ? !isQuick || quick !== null : only.includes(name)))
    .map((scenario) => ({ ...scenario, cast: isQuick ? quickCast(scenario) : scenario.cast }))
    .map((scenario) => ({
      ...scenario,
      cast: [...scenario.cast, ...triedIn(scenario, trials)].filter(
        ({ contender }) => peers === null || peers.includes(contender.name),
      ),
    }))
    .filter(({ cast }) => cast.length > 0)
}

/** Each once, tuned where there is a choice. */
function quickCast({ cast, quick }: Scenario): readonly Part[] {
  const hasTuned = (name: string): boolean =>
    cast.some(({ contender, tuning }) => contender.name === name && tuning === 'tuned')
  return cast
    .filter(({ contender, tuning }) => tuning === 'tuned' || !hasTuned(contender.name))
    .filter(({ pace }) => pace >= quickPace)
    .filter(({ contender }) => quick?.isAlone === undefined || contender.kind === 'ours')
}

function triedIn({ cast }: Scenario, trials: readonly Trial[]): readonly Part[] {
  return trials
    .filter(({ contender }) => cast.some((part) => part.contender.name === contender))
    .map(({ contender, settings }) => ({
      ...partOf(contenderNamed(contender), 'tuned'),
      tuning: JSON.stringify(settings),
      settings,
    }))
}
