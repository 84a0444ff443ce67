import { describe, expect, test } from 'vitest'
import { compare } from './compare.ts'
import { renderTable, renderVerdict } from './render.ts'
import { consuming, publishing } from './sample.ts'

const baseline = { publish: publishing({}), consume: consuming({}) }

describe('the table', () => {
  test('says of each counter whether it is gated, and leaves out what is zero', () => {
    const table = renderTable(compare(baseline, baseline))

    expect(table).toBe(
      `
  per message            value  baseline  verdict

publish
  insert statements          1         1  ok
  rows inserted              1         1  ok
  WAL records                4         4  ok
  WAL bytes                320       320  ok

consume
  claim statements      0.0200    0.0200  not gated
  delete statements     0.0100    0.0100  not gated
  rows updated               1         1  ok
  rows deleted               1         1  ok
  HOT share of updates       1         1  ok
  dead rows             1.1000    1.1000  not gated
  WAL records                3         3  ok
  WAL bytes                230       230  ok`.slice(1),
    )
  })

  test('shows a failure with its reason, also where one side is zero or missing', () => {
    const measured = { publish: publishing({ otherStatements: 100 }) }

    const table = renderTable(compare(measured, baseline))

    expect(table).toMatch(/other statements +1 +0 {2}FAILED: differs/)
    expect(table).toMatch(/consume\n {2}messages +– +100 {2}FAILED: was not measured/)
  })
})

describe('the verdict', () => {
  test('counts what is gated', () => {
    expect(renderVerdict(compare(baseline, baseline))).toBe('All 19 gated counters hold.')
  })

  test('counts what failed and says what to do', () => {
    const measured = { ...baseline, publish: publishing({ otherStatements: 1, walBytes: 99_000 }) }

    expect(renderVerdict(compare(measured, baseline))).toMatch(/^2 of 19 gated counters failed\. .*--update/)
  })
})
