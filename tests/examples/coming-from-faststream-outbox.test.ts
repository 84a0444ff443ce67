// The page for those who come from faststream-outbox shows files that are run here.
import { expect, test } from 'vitest'
import { expectShown, npmIn } from './guide.ts'

const example = 'coming-from-faststream-outbox'

test('the examples of the page pass, from the built package', async () => {
  const { status, output } = await npmIn(example, 'test')
  expect(output).toMatch(/Tests +8 passed/)
  expect(status, output).toBe(0)
})

test('the page shows every file of the example as it is run', () => {
  expectShown(example)
})
