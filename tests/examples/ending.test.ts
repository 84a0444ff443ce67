import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { listenForEnding } from '../../examples/shop/src/ending.ts'

const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})

afterEach(() => {
  vi.useRealTimers()
  // A second signal takes the listeners away again.
  process.emit('SIGTERM', 'SIGTERM')
  process.emit('SIGTERM', 'SIGTERM')
})

test.each(names)('the first signal closes the shop, a second %s skips the rest', (name) => {
  const ending = listenForEnding()

  process.emit('SIGTERM', 'SIGTERM')
  const afterFirst = [ending.closing.aborted, ending.hurry.aborted]
  process.emit(name, name)

  expect(afterFirst).toEqual([true, false])
  expect(ending.hurry.aborted).toBe(true)
})

test('two SIGINT within half a second are one Ctrl-C that npm passed on, and skip nothing', () => {
  const ending = listenForEnding()

  process.emit('SIGINT', 'SIGINT')
  vi.advanceTimersByTime(499)
  process.emit('SIGINT', 'SIGINT')

  expect([ending.closing.aborted, ending.hurry.aborted]).toEqual([true, false])
})

test('two SIGINT half a second apart are two, and skip the rest', () => {
  const ending = listenForEnding()

  process.emit('SIGINT', 'SIGINT')
  vi.advanceTimersByTime(500)
  process.emit('SIGINT', 'SIGINT')

  expect(ending.hurry.aborted).toBe(true)
})

test('after the second signal nobody listens any more: the next one ends the process', () => {
  const before = names.map((name) => process.listenerCount(name))
  listenForEnding()

  process.emit('SIGTERM', 'SIGTERM')
  process.emit('SIGHUP', 'SIGHUP')

  expect(names.map((name) => process.listenerCount(name))).toEqual(before)
})
