// The guide to ordered queues shows files of examples/ordering: they are run here, as their reader would.
import { expect, test } from 'vitest'
import { expectShown, npmIn } from './guide.ts'

test('the examples of the guide pass, from the built package', async () => {
  const { status, output } = await npmIn('ordering', 'test')
  expect(status, output).toBe(0)
})

test('the guide shows every file of the example as it is run, and no other code', () => {
  expectShown('ordering')
})
