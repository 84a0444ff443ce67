import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from './clock.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

/** A sleep, and whether it has ended. */
function sleepOf(ms: number, signal: AbortSignal) {
  const sleep = { ended: false, promise: systemClock.sleep(ms, signal) }
  void sleep.promise.then(() => {
    sleep.ended = true
  })
  return sleep
}

describe('systemClock', () => {
  test('sleeps for as long as it is asked to, and no shorter', async () => {
    const sleep = sleepOf(250, new AbortController().signal)
    await vi.advanceTimersByTimeAsync(249)
    const before = sleep.ended
    await vi.advanceTimersByTimeAsync(1)

    expect([before, sleep.ended]).toEqual([false, true])
  })

  test('an abort ends a sleep at once, without an error and without a timer left behind', async () => {
    const waking = new AbortController()
    const { promise } = sleepOf(60_000, waking.signal)
    waking.abort(new Error('a reason that nobody sees'))

    await expect(promise).resolves.toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('does not sleep at all when the signal has aborted before', async () => {
    await expect(systemClock.sleep(60_000, AbortSignal.abort())).resolves.toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a sleep that ended leaves no listener on the signal', async () => {
    const { signal } = new AbortController()
    const sleeps = [1, 2, 3].map((ms) => systemClock.sleep(ms, signal))
    const during = getEventListeners(signal, 'abort').length
    await vi.advanceTimersByTimeAsync(3)
    await Promise.all(sleeps)

    expect([during, getEventListeners(signal, 'abort').length]).toEqual([3, 0])
  })

  test('is a clock that does not go back when the date is set back', () => {
    vi.useRealTimers()
    const before = systemClock.now()
    vi.useFakeTimers({ toFake: ['Date'], now: 0 })

    expect(systemClock.now()).toBeGreaterThanOrEqual(before)
  })
})
