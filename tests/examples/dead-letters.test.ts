// The page on dead letters shows files of examples/dead-letters: they are run here, as their reader would.
import { expect, test } from 'vitest'
import { expectShown, npmIn } from './guide.ts'

const example = 'dead-letters'

test('the examples of the page pass, in both places where dead letters may lie', async () => {
  const { status, output } = await npmIn(example, 'test')
  expect(output).toMatch(/Tests +24 passed/)
  expect(status, output).toBe(0)
})

test('the page shows every file of the example as it is run', () => {
  expectShown(example)
})
