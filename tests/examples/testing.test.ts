// The guide to testing shows files of examples/testing: they are run here, with both runners, as their reader would.
import { expect, test } from 'vitest'
import { expectShown, npmIn } from './guide.ts'

test('the examples of the guide pass with vitest, from the built package', async () => {
  const { status, output } = await npmIn('testing', 'test')
  expect(output).toMatch(/Tests +7 passed/)
  expect(status, output).toBe(0)
})

test('the examples of the guide pass with node:test, from the built package', async () => {
  const { status, output } = await npmIn('testing', 'run', 'test:node')
  expect(output).toMatch(/pass 2\b/)
  expect(output).toMatch(/fail 0\b/)
  expect(status, output).toBe(0)
})

test('the guide shows every file of the example as it is run', () => {
  expectShown('testing')
})
