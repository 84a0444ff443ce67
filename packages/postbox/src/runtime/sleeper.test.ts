import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { createSleeper } from './sleeper.ts'

function sleeperOf() {
  const clock = fakeClock()
  return { clock, sleeper: createSleeper(clock) }
}

describe('createSleeper', () => {
  test.each([
    ['the time that is left', 1_250, 250],
    ['a millisecond more rather than a fraction too little', 1_250.2, 251],
    ['nothing when the time has passed', 900, 0],
  ])('asks the clock for %s', (_, at, asked) => {
    const { clock, sleeper } = sleeperOf()
    clock.advance(1_000)
    void sleeper.sleepUntil(at)

    expect(clock.asked).toEqual([asked])
  })

  test('says that the time has come when nobody woke it', async () => {
    const { clock, sleeper } = sleeperOf()
    const sleeping = sleeper.sleepUntil(100)
    clock.advance(100)

    expect(await sleeping).toBe(false)
  })

  test('sleeps what is left when the clock wakes it a little early', async () => {
    const { clock, sleeper } = sleeperOf()
    // Node's timers count whole milliseconds, from one that had begun.
    const early = {
      now: clock.now,
      sleep: (ms: number, signal: AbortSignal) => clock.sleep(ms - 0.75, signal),
    }
    const sleeping = createSleeper(early).sleepUntil(100)
    clock.advance(99.25)
    await Promise.resolve()
    await Promise.resolve()
    const asked = [...clock.asked]
    clock.advance(0.75)

    expect([asked, await sleeping, sleeper.wakesAt]).toEqual([[99.25, 0.25], false, null])
  })

  test('believes a clock that ends the sleep for good', async () => {
    const { clock } = sleeperOf()
    const hasty = { now: clock.now, sleep: () => Promise.resolve() }

    expect(await createSleeper(hasty).sleepUntil(100)).toBe(false)
  })

  test('ends at once when it is woken, and says so', async () => {
    const { clock, sleeper } = sleeperOf()
    const sleeping = sleeper.sleepUntil(100)
    sleeper.wake()

    expect(await sleeping).toBe(true)
    expect(clock.now()).toBe(0)
  })

  test('says when it will wake by itself, from the moment of asking until the sleep has ended', async () => {
    const { clock, sleeper } = sleeperOf()
    const before = sleeper.wakesAt
    const sleeping = sleeper.sleepUntil(100)
    const during = sleeper.wakesAt
    clock.advance(100)
    await sleeping

    expect([before, during, sleeper.wakesAt]).toEqual([null, 100, null])
  })

  test('is awake as soon as it is woken, and need not be woken again', async () => {
    const { clock, sleeper } = sleeperOf()
    const sleeping = sleeper.sleepUntil(100)
    sleeper.wake()
    const woken = sleeper.wakesAt
    sleeper.wake()

    expect([woken, await sleeping, sleeper.wakesAt, clock.left]).toEqual([null, true, null, []])
  })

  test('a wake-up while nobody sleeps does not shorten the next sleep', async () => {
    const { clock, sleeper } = sleeperOf()
    sleeper.wake()
    const first = sleeper.sleepUntil(100)
    sleeper.wake()
    await first
    sleeper.wake()
    const second = sleeper.sleepUntil(100)
    clock.advance(100)

    expect([await first, await second]).toEqual([true, false])
  })
})
