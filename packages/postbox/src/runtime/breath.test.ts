import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createBreath } from './breath.ts'
import { systemClock } from './clock.ts'

const most = 64

/** Asks for as many starts as it gets. */
function starting(clock: Parameters<typeof createBreath>[0] = systemClock) {
  const breath = createBreath(clock)
  let starts = 0
  const start = (): void => {
    while (starts < 1_000 && breath.mayStart(start)) starts++
  }
  return { breath, start, starts: () => starts }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('handlers that wait for nothing', () => {
  test('start no more than so many in one turn of the event loop, and go on in the next', async () => {
    const { start, starts } = starting()
    start()
    await Promise.resolve()
    const first = starts()
    await nextTurn()

    expect([first, starts()]).toEqual([most, 2 * most])
  })

  test('go on under timers that a test has put in the place of the real ones', async () => {
    const turn = setImmediate
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const { start, starts } = starting()
    start()
    await new Promise<void>((resolve) => turn(resolve))

    expect(starts()).toBe(2 * most)
  })

  test('go on when something is answered, though no turn was ever told', () => {
    const { breath, start, starts } = starting({ nextTurn: () => {} })
    start()
    breath.turned()

    expect(starts()).toBe(2 * most)
  })

  test('are not counted where the clock knows no turns', () => {
    const { start, starts } = starting({})
    start()

    expect(starts()).toBe(1_000)
  })

  test('of several subscriptions share it, and those that were refused are asked once each', async () => {
    const breath = createBreath(systemClock)
    for (let n = 0; n < most; n++) breath.mayStart(() => {})
    const asked: string[] = []
    const [one, other] = [() => void asked.push('one'), () => void asked.push('other')]
    const may = [one, other, one].map((again) => breath.mayStart(again))
    await nextTurn()

    expect({ may, asked }).toEqual({ may: [false, false, false], asked: ['one', 'other'] })
  })
})
