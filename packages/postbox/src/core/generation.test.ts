import { expect, test } from 'vitest'
import { mayRun } from './generation.ts'

test.each([
  [2, null, true],
  [2, 1, true],
  [2, 2, true],
  [2, 3, false],
  [0, 0, true],
  [0, 1, false],
  [null, 7, true],
  [null, null, true],
])('code of generation %s and a message of generation %s: it may run it, %s', (own, generation, may) => {
  expect(mayRun(own, { generation })).toBe(may)
})
