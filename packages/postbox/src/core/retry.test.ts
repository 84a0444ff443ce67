import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { backoffMs } from './retry.ts'

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const count = fc.integer({ min: 1, max: 2_147_483_647 })
const almostOne = 1 - Number.EPSILON

describe('backoffMs', () => {
  test('is never below zero and never above five minutes', () => {
    fc.assert(
      fc.property(count, random, (attempt, chance) => {
        const delayMs = backoffMs(attempt, chance)

        expect(delayMs >= 0 && delayMs <= 300_000).toBe(true)
      }),
    )
  })

  test.each([
    [1, 1_000],
    [2, 2_000],
    [9, 256_000],
    [10, 300_000],
    [2_147_483_647, 300_000],
  ])('after failure %i the longest wait is %i ms', (attempt, mostMs) => {
    expect(backoffMs(attempt, almostOne)).toBeCloseTo(mostMs, 3)
    expect(backoffMs(attempt, 0)).toBe(0)
    expect(backoffMs(attempt, 0.5)).toBe(mostMs / 2)
  })
})
