import { expect, test } from 'vitest'
import { chooseScenarios } from './choose.ts'
import { costsOf, heatsOf, messagesOf, minutesOf, partsIn } from './plan.ts'
import { definitions } from './ratios.ts'

const everything = { isQuick: false, only: null, peers: null, trials: [] }

test('a slow contender is given fewer messages of a backlog, but enough for a rate', () => {
  const [noop, defaults] = chooseScenarios({ ...everything, only: ['drain-noop', 'drain-defaults'] })
  const given = (scenario: typeof noop): object =>
    Object.fromEntries(
      scenario!.cast.map((part) => [part.contender.name, messagesOf(scenario!, part, false)]),
    )
  expect(given(noop)).toMatchObject({ postbox: 150_000, 'pg-boss': 150_000, bullmq: 4_000 })
  expect(given(defaults)).toMatchObject({ 'pg-boss': 6 })
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
    only: ['load-1000'],
    peers: ['postbox', 'graphile-worker'],
  })
  const costs = costsOf({ scenario: scenario!, round: 3 }, false)
  expect(costs).toEqual({ round: 3, starts: 3, work: 20 })
  expect(minutesOf([costs, { ...costs, work: 54 - 20 }])).toBe(1)
  expect(minutesOf([costs, { ...costs, work: 54 - 20 }], 0.5)).toBe(0.55)
})

test('a full run takes an hour at most', () => {
  const heats = heatsOf({ scenarios: chooseScenarios(everything), rounds: 5, isQuick: false })
  expect(minutesOf(heats.map((heat) => costsOf(heat, false)))).toBeLessThan(60)
})

test('whoever a bar is held against has five rounds, but where one takes minutes', () => {
  const heats = heatsOf({ scenarios: chooseScenarios(everything), rounds: 5, isQuick: false })
  const long = ['pinned-xmin', 'million']
  for (const { scenario: name, ...definition } of Object.values(definitions)) {
    if (long.includes(name)) continue
    const own = heats.filter(({ scenario }) => scenario.name === name)
    const held = own[0]!.scenario.cast.filter(
      ({ contender }) => 'against' in definition || contender.kind === 'ours',
    )
    for (const part of held)
      expect([name, own.filter((heat) => partsIn(heat).includes(part)).length]).toEqual([name, 5])
  }
})

test('where no bar is held against them the peers leave after some rounds, and Postbox stays', () => {
  const scenarios = chooseScenarios({ ...everything, only: ['four-processes'] })
  const kinds = heatsOf({ scenarios, rounds: 5, isQuick: false }).map(
    (heat) => new Set(partsIn(heat).map(({ contender }) => contender.kind)).size,
  )
  expect(kinds[0]).toBe(2)
  expect(kinds[4]).toBe(1)
})
