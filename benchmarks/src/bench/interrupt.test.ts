import { expect, test } from 'vitest'
import { Interrupted, interruptible } from './interrupt.ts'

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('%s lets the work clean up, and is known by its exit code', async (name, exitCode) => {
  const before = process.listenerCount(name)
  const seen = interruptible(async (signal) => {
    process.emit(name, name)
    // A second one ends the process: nobody listens any more.
    expect(process.listenerCount(name)).toBe(before)
    return signal.reason as Interrupted
  })
  expect(await seen).toBeInstanceOf(Interrupted)
  expect(await seen).toMatchObject({ message: `interrupted by ${name}`, exitCode })
})

test('work that ends by itself, or fails, leaves no listener behind', async () => {
  const before = process.listenerCount('SIGINT')
  expect(await interruptible(async (signal) => signal.aborted)).toBe(false)
  await expect(interruptible(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  expect(process.listenerCount('SIGINT')).toBe(before)
})
