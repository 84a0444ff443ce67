import { describe, expect, test } from 'vitest'
import { compare } from './compare.ts'
import type { Measurement, Measurements, Totals } from './measurement.ts'
import { consuming, publishing } from './sample.ts'

const baseline = { publish: publishing({}), consume: consuming({}) }

function failuresOf(measured: Measurements, against: Measurements = baseline): readonly string[] {
  return compare(measured, against)
    .filter(({ problem }) => problem !== null)
    .map(({ scenario, counter, problem }) => `${scenario}: ${counter} ${problem}`)
}

function changed(scenario: 'publish' | 'consume', changes: Partial<Totals>): readonly string[] {
  const make = scenario === 'publish' ? publishing : consuming
  return failuresOf({ ...baseline, [scenario]: make(changes) })
}

describe('a gated run', () => {
  test('that repeats the baseline passes', () => {
    expect(failuresOf(baseline)).toEqual([])
  })

  test.each(['publish', 'consume'] as const)('fails by one row more or less (%s)', (scenario) => {
    const rowsInserted = scenario === 'publish' ? 100 : 0

    expect(changed(scenario, { rowsInserted: rowsInserted + 1 })).toEqual([
      `${scenario}: rows inserted differs`,
    ])
    expect(changed(scenario, { rowsDeleted: 99 })).toEqual([`${scenario}: rows deleted differs`])
    expect(changed(scenario, { rowsUpdated: 101, hotUpdates: 101 })).toContain(
      `${scenario}: rows updated differs`,
    )
  })

  test.each([
    ['insertStatements', 101, 'insert statements'],
    ['insertStatements', 99, 'insert statements'],
    ['claimStatements', 1, 'claim statements'],
    ['deleteStatements', 1, 'delete statements'],
    ['blockStatements', 1, 'begin and commit'],
    ['otherStatements', 1, 'other statements'],
    ['commits', 1, 'commits that wrote'],
    ['notifications', 1, 'notifications'],
    ['deadRows', 1, 'dead rows'],
  ] as const)('fails when a publisher has %s = %d', (total, value, counter) => {
    expect(changed('publish', { [total]: value })).toEqual([`publish: ${counter} differs`])
  })

  test('lets a consumer ask as often as its timers say', () => {
    const polling = {
      claimStatements: 900,
      deleteStatements: 40,
      otherStatements: 7,
      commits: 41,
      deadRows: 200,
    }

    expect(changed('consume', polling)).toEqual([])
  })
})

describe('WAL', () => {
  test.each([
    ['walRecords', 'WAL records', 300],
    ['walBytes', 'WAL bytes', 23_000],
  ] as const)('%s may be fewer or a tenth more', (total, counter, usual) => {
    expect(changed('consume', { [total]: usual * 0.5 })).toEqual([])
    expect(changed('consume', { [total]: usual * 1.03 })).toEqual([])
    expect(changed('consume', { [total]: usual * 1.1 })).toEqual([])
    expect(changed('consume', { [total]: usual * 1.11 })).toEqual([
      `consume: ${counter} more than a tenth above`,
    ])
    expect(changed('consume', { [total]: usual * 1.2 })).toHaveLength(1)
  })
})

describe('the HOT share', () => {
  test('may fall by 0.02 and no further', () => {
    expect(changed('consume', { hotUpdates: 98 })).toEqual([])
    expect(changed('consume', { hotUpdates: 97 })).toEqual([
      'consume: HOT share of updates more than 0.02 below',
    ])
  })

  test('may rise', () => {
    const worse = { ...baseline, consume: consuming({ hotUpdates: 80 }) }

    expect(failuresOf(baseline, worse)).toEqual([])
  })
})

describe('what is not measured on both sides', () => {
  test('fails, a scenario of the baseline as well as a new one', () => {
    const { publish, consume } = baseline

    expect(failuresOf({ publish })).toEqual(['consume: messages was not measured'])
    expect(failuresOf(baseline, { consume })).toEqual(['publish: messages is not in the baseline'])
    expect(failuresOf({})).toHaveLength(2)
  })

  test('fails when a scenario has changed its size', () => {
    const half: Measurement = { ...publishing({}), messages: 50 }

    expect(failuresOf({ ...baseline, publish: half })).toEqual([
      'publish: messages the scenario has another size than in the baseline',
    ])
  })

  test('fails when the baseline knows nothing of a counter', () => {
    const { walBytes: _, ...older } = publishing({}).totals
    const before = { ...baseline, publish: { ...publishing({}), totals: older as Totals } }

    expect(failuresOf(baseline, before)).toEqual(['publish: WAL bytes is not in the baseline'])
    expect(failuresOf(before, baseline)).toEqual(['publish: WAL bytes was not measured'])
  })
})
