import { expect, test } from 'vitest'
import { percentile, spreadOf } from './statistics.ts'

test('a percentile is one of the values, the smallest that so many do not exceed', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index)
  expect(percentile(hundred, 50)).toBe(50)
  expect(percentile(hundred, 99)).toBe(99)
  expect(percentile([3, 1, 2], 50)).toBe(2)
  expect(percentile([7], 99)).toBe(7)
})

test('numbers are sorted as numbers', () => {
  expect(percentile([10, 9, 100], 50)).toBe(10)
})

test('of nothing there is no percentile', () => {
  expect(percentile([], 50)).toBeNaN()
})

test('a spread reaches from the least to the most', () => {
  expect(spreadOf([5, 1, 3])).toEqual({ median: 3, min: 1, max: 5 })
})
