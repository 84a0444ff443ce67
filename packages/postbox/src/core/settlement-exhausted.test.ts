import { describe, expect, test } from 'vitest'
import { leaseOf } from '../../../../tests/support/settlements.ts'
import type { Lease } from './lease.ts'
import { deliveriesWithoutOutcome, isExhausted, isSuspect } from './settlement.ts'

const claimed = (deliveries: number, failures = 0): Lease =>
  leaseOf('1', { deliveries, attempt: failures + 1 })

test.each([
  [1, 0, false],
  [2, 0, true],
  [3, 2, false],
  [4, 2, true],
])(
  'a suspect has a delivery without an outcome behind it: claim %d after %d failures: %s',
  (deliveries, failures, is) => {
    expect(isSuspect(claimed(deliveries, failures))).toBe(is)
  },
)

describe('isExhausted (U-MSG-07)', () => {
  test.each([
    [1, 0, false],
    [5, 0, false],
    [6, 0, true],
    [7, 0, true],
    // Each run that failed was a delivery with an outcome.
    [6, 1, false],
    [1_000, 999, false],
    [1_004, 999, false],
    [1_005, 999, true],
  ])('at most 5 without an outcome, claim %d after %d failures: %s', (deliveries, failures, isOver) => {
    expect(isExhausted(claimed(deliveries, failures), 5)).toBe(isOver)
  })

  test('at most 1: the second claim is one too many, the first is not', () => {
    expect([1, 2].map((deliveries) => isExhausted(claimed(deliveries), 1))).toEqual([false, true])
  })

  test('null: never', () => {
    expect(isExhausted(claimed(2_000_000_000), null)).toBe(false)
  })

  test('counts the deliveries before this one that ended in silence', () => {
    expect(deliveriesWithoutOutcome(claimed(1))).toBe(0)
    expect(deliveriesWithoutOutcome(claimed(9, 3))).toBe(5)
  })
})
