import { expect, test } from 'vitest'
import { Stretch } from './stretch.ts'

test('a slow start is no part of the rate', () => {
  const stretch = new Stretch(100, 0)
  stretch.see(1, 4_000)
  stretch.see(10, 5_000)
  stretch.see(50, 5_400)
  expect(stretch.perSecond(5_900)).toBe(100)
})

test('what was done before the stretch is not counted in it', () => {
  const stretch = new Stretch(100, 0)
  stretch.see(40, 1_000)
  expect(stretch.perSecond(2_000)).toBe(60)
})

test.each([[[]], [[60]], [[100]]])('where %j are the first that are seen, all of it counts', (seen) => {
  const stretch = new Stretch(100, 500)
  for (const done of seen) stretch.see(done, 1_000)
  expect(stretch.perSecond(1_500)).toBe(100)
})
