import { expect, test } from 'vitest'
import { Budget, quickSeconds } from './budget.ts'
import { chooseScenarios } from './choose.ts'
import { type Costs, costsOf, heatsOf } from './plan.ts'

const scenarios = chooseScenarios({ isQuick: true, only: null, peers: null, trials: [] })
const heats = heatsOf({ scenarios, rounds: 5, isQuick: true })
const costs = heats.map((heat) => costsOf(heat, true))

interface Outcome {
  readonly seconds: number
  readonly shares: readonly { readonly round: number; readonly share: number }[]
}

/** A machine on which everything takes so many times what was estimated, and work another factor more. */
function quickRunOn(machine: { readonly slowness: number; readonly work?: number }): Outcome {
  const { slowness, work = 1 } = machine
  let seconds = 3 * slowness
  const budget = new Budget(quickSeconds.measure, () => seconds)
  const shares: { round: number; share: number }[] = []
  for (const [index, heat] of costs.entries()) {
    const share = budget.shareFor(costs.slice(index), costs[index - 1]?.round === heat.round)
    if (share === null) break
    const taken = slowness * (heat.starts + heat.work * share * work)
    seconds += taken
    budget.learn(heat.starts + heat.work * share, taken)
    shares.push({ round: heat.round, share })
  }
  return { seconds, shares }
}

test.each([0.3, 0.6, 1, 1.5, 2])(
  'a quick run ends in time, and everybody has run, on a machine that is %d times as slow as was thought',
  (slowness) => {
    for (const work of [0.5, 1, 2]) {
      const { seconds, shares } = quickRunOn({ slowness, work })
      expect(seconds).toBeLessThan(quickSeconds.end)
      const first = heats.filter(({ round }) => round === 0)
      expect(shares.filter(({ round }) => round === 0)).toHaveLength(first.length)
    }
  },
)

test('the slower the machine, the fewer the messages', () => {
  const sum = ({ shares }: Outcome): number => shares.reduce((total, { share }) => total + share, 0)
  expect(sum(quickRunOn({ slowness: 3 }))).toBeLessThan(sum(quickRunOn({ slowness: 1 })))
  expect(sum(quickRunOn({ slowness: 1 }))).toBeLessThan(sum(quickRunOn({ slowness: 0.1 })))
})

test('a machine that is fast enough runs every round with all the messages', () => {
  const { shares } = quickRunOn({ slowness: 0.1 })
  expect(shares).toHaveLength(heats.length)
  // Before the first heat it does not know yet.
  expect(new Set(shares.slice(1).map(({ share }) => share))).toEqual(new Set([1]))
})

const heat = (round: number, starts: number, work: number): Costs => ({ round, starts, work })

test('all rounds are run with fewer messages rather than one less with all of them', () => {
  const budget = new Budget(30, () => 0)
  expect(budget.shareFor([heat(0, 5, 10), heat(1, 5, 10)], false)).toBe(1)
  expect(budget.shareFor([heat(0, 5, 20), heat(1, 5, 20)], false)).toBe(0.5)
})

test('a round that would have hardly any messages is left out, for the sake of the others', () => {
  const budget = new Budget(30, () => 0)
  const three = [heat(0, 5, 20), heat(1, 5, 20), heat(2, 5, 40)]
  expect(budget.shareFor(three, false)).toBe(0.5)
})

test('no round is begun that there is no time for; one that was begun is finished, and the first is always run', () => {
  const late = new Budget(30, () => 29)
  expect(late.shareFor([heat(1, 5, 10)], false)).toBeNull()
  expect(late.shareFor([heat(1, 5, 10)], true)).toBe(0.05)
  expect(late.shareFor([heat(0, 5, 10)], false)).toBe(0.05)
})

test('nothing left to be run asks for nothing', () => {
  expect(new Budget(30, () => 0).shareFor([], true)).toBeNull()
})
