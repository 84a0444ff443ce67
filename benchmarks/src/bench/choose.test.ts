import { expect, test } from 'vitest'
import { contenders } from '../contenders/catalogue.ts'
import { chooseScenarios } from './choose.ts'
import { definitions } from './ratios.ts'
import { scenarios } from './scenarios.ts'

const everything = { isQuick: false, only: null, peers: null, trials: [] }

test('a quick run leaves out what takes minutes, unless it is asked for by name', () => {
  const names = (only: readonly string[] | null): readonly string[] =>
    chooseScenarios({ ...everything, isQuick: true, only }).map(({ name }) => name)
  expect(names(null)).toContain('drain-noop')
  expect(names(null)).not.toContain('scheduled')
  expect(names(['scheduled'])).toEqual(['scheduled'])
})

test('in a quick run nobody runs twice in a scenario, and nobody who takes seconds for a message', () => {
  for (const { cast } of chooseScenarios({ ...everything, isQuick: true })) {
    const names = cast.map(({ contender }) => contender.name)
    expect(names).toEqual([...new Set(names)])
    expect(names).not.toContain('pg-transactional-outbox')
  }
})

test('a contender can be run alone, and scenarios without it are left out', () => {
  const chosen = chooseScenarios({ ...everything, peers: ['floor'] })
  expect(new Set(chosen.flatMap(({ cast }) => cast.map(({ contender }) => contender.name)))).toEqual(
    new Set(['floor']),
  )
  expect(chosen.map(({ name }) => name)).not.toContain('idle-latency')
})

test('a quick run has every bar: those that are held against nobody are of Postbox alone', () => {
  const chosen = chooseScenarios({ ...everything, isQuick: true })
  const namesIn = (scenario: string): readonly string[] | undefined =>
    chosen.find(({ name }) => name === scenario)?.cast.map(({ contender }) => contender.name)
  for (const { scenario, ...definition } of Object.values(definitions))
    expect(namesIn(scenario)?.length).toBeGreaterThan('against' in definition ? 1 : 0)
  expect(namesIn('timers')).toEqual(['postbox'])
})

test('settings that are tried take part beside ours, where their contender does', () => {
  const trials = [{ contender: 'pg-boss', settings: { work: { batchSize: 500 } } }]
  const chosen = chooseScenarios({ ...everything, only: ['drain-noop', 'idle-latency'], trials })
  const [noop, idle] = chosen.map(({ cast }) => cast.filter(({ contender }) => contender.name === 'pg-boss'))
  expect(noop!.map(({ tuning }) => tuning)).toEqual(['tuned', '{"work":{"batchSize":500}}'])
  expect(noop![1]!.settings).toEqual({ work: { batchSize: 500 } })
  expect(idle).toEqual([])
})

test('of every contender it is known where its tuning comes from', () => {
  for (const { source } of contenders) expect(source).toMatch(/\w+/)
})

test('a peer that is not in a scenario is missing for a reason', () => {
  const peers = contenders.filter(({ kind, name, driver }) => kind === 'peer' && name === driver)
  for (const { name, title, cast, cannot = {} } of scenarios) {
    if (title.includes('options of Postbox') || name === 'million') continue
    const present = new Set<string>(cast.map(({ contender }) => contender.driver))
    const missing = peers.filter(({ driver }) => !present.has(driver)).map(({ driver }) => driver)
    expect({ name, missing }).toEqual({ name, missing: missing.filter((driver) => driver in cannot) })
  }
})
