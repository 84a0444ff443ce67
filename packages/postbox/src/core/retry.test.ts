import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { backoffMs } from './retry.ts'

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const count = fc.integer({ min: 1, max: 2_147_483_647 })
const almostOne = 1 - Number.EPSILON

describe('backoffMs', () => {
  test('is never below half a second and never above five minutes', () => {
    fc.assert(
      fc.property(count, random, (attempt, chance) => {
        const delayMs = backoffMs(attempt, chance)

        expect(delayMs >= 500 && delayMs <= 300_000).toBe(true)
      }),
    )
  })

  test.each([
    [1, 500, 1_000],
    [2, 1_000, 2_000],
    [9, 128_000, 256_000],
    [10, 150_000, 300_000],
    [2_147_483_647, 150_000, 300_000],
  ])('after failure %i a message waits from %i to %i ms', (attempt, leastMs, mostMs) => {
    expect(backoffMs(attempt, 0)).toBe(leastMs)
    expect(backoffMs(attempt, almostOne)).toBeCloseTo(mostMs, 3)
  })
})
