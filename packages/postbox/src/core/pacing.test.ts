import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { pollDelayMs, reconnectDelayMs } from './pacing.ts'

const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const count = fc.integer({ min: 1, max: 2_147_483_647 })
const almostOne = 1 - Number.EPSILON

describe('pollDelayMs', () => {
  const ladder = fc
    .tuple(fc.integer({ min: 1, max: 3_600_000 }), fc.integer({ min: 1, max: 3_600_000 }))
    .map(([a, b]) => ({ min: Math.min(a, b), max: Math.max(a, b) }))

  test('is never below 0.6 × min and never above max', () => {
    fc.assert(
      fc.property(count, ladder, random, (emptyClaims, bounds, chance) => {
        const delayMs = pollDelayMs(emptyClaims, bounds, chance)

        expect(delayMs).toBeGreaterThanOrEqual(0.6 * bounds.min)
        expect(delayMs).toBeLessThanOrEqual(bounds.max)
      }),
    )
  })

  test('never gets shorter while nothing is found', () => {
    fc.assert(
      fc.property(count, ladder, random, (emptyClaims, bounds, chance) => {
        expect(pollDelayMs(emptyClaims + 1, bounds, chance)).toBeGreaterThanOrEqual(
          pollDelayMs(emptyClaims, bounds, chance),
        )
      }),
    )
  })

  test.each([
    [1, 20],
    [2, 40],
    [8, 2_560],
    [9, 5_000],
    [1_000, 5_000],
  ])('after %i empty looks it lies from 0.6 of %i ms up to all of them', (emptyClaims, stepMs) => {
    const bounds = { min: 20, max: 5_000 }

    expect(pollDelayMs(emptyClaims, bounds, 0)).toBe(0.6 * stepMs)
    expect(pollDelayMs(emptyClaims, bounds, almostOne)).toBeCloseTo(stepMs, 6)
    expect(pollDelayMs(emptyClaims, bounds, almostOne)).toBeLessThanOrEqual(stepMs)
  })
})

describe('reconnectDelayMs', () => {
  // U-RTY-11
  test.each([
    [1, 50, 100],
    [3, 200, 400],
    [9, 12_800, 25_600],
    [10, 15_000, 30_000],
    [5_000, 15_000, 30_000],
  ])('after failure %i it lies from %i to %i ms', (failures, least, most) => {
    expect(reconnectDelayMs(failures, 0)).toBe(least)
    expect(reconnectDelayMs(failures, almostOne)).toBeCloseTo(most, 3)
  })

  test('is never below half of its step and never above thirty seconds', () => {
    fc.assert(
      fc.property(count, random, (failures, chance) => {
        const delayMs = reconnectDelayMs(failures, chance)

        expect(delayMs >= 50 && delayMs <= 30_000).toBe(true)
      }),
    )
  })
})
