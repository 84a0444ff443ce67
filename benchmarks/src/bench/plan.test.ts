import { expect, test } from 'vitest'
import { chooseScenarios } from './choose.ts'
import { costsOf, heatsOf, messagesOf, minutesOf } from './plan.ts'

const everything = { isQuick: false, only: null, peers: null, trials: [] }

test('a slow contender is given fewer messages of a backlog, but enough for a rate', () => {
  const [noop, defaults] = chooseScenarios({ ...everything, only: ['drain-noop', 'drain-defaults'] })
  const given = (scenario: typeof noop): object =>
    Object.fromEntries(
      scenario!.cast.map((part) => [part.contender.name, messagesOf(scenario!, part, false)]),
    )
  expect(given(noop)).toMatchObject({ postbox: 100_000, bullmq: 2_800 })
  expect(given(defaults)).toMatchObject({ 'pg-boss': 20 })
})

test('a full run goes scenario by scenario, a quick one round by round', () => {
  const order = (isQuick: boolean): readonly string[] =>
    heatsOf({
      scenarios: chooseScenarios({ ...everything, isQuick, only: ['drain-noop', 'million', 'publish-64'] }),
      rounds: 2,
      isQuick,
    }).map(({ scenario, round }) => `${scenario.name} ${round}`)
  expect(order(false)).toEqual(['drain-noop 0', 'drain-noop 1', 'million 0', 'publish-64 0', 'publish-64 1'])
  expect(order(true)).toEqual(['drain-noop 0', 'million 0', 'publish-64 0', 'drain-noop 1', 'publish-64 1'])
})

test('nobody has more rounds than were asked for', () => {
  const scenarios = chooseScenarios({ ...everything, only: ['drain-noop', 'million'] })
  expect(heatsOf({ scenarios, rounds: 1, isQuick: false }).map(({ round }) => round)).toEqual([0, 0])
})

test('what a heat takes is what its contenders take together', () => {
  const [scenario] = chooseScenarios({
    ...everything,
    only: ['publish-many'],
    peers: ['postbox', 'floor'],
  })
  const costs = costsOf({ scenario: scenario!, round: 3 }, false)
  expect(costs).toEqual({ round: 3, starts: 3, work: 10 })
  expect(minutesOf([costs, { ...costs, work: 54 - 10 }])).toBe(1)
  expect(minutesOf([costs, { ...costs, work: 54 - 10 }], 0.5)).toBe(0.55)
})
