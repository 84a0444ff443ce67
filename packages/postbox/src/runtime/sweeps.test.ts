import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { createSweeps } from './sweeps.ts'

/** Sweeps that each take so long, at a time when the process has run for a while. */
function sweepsOf(sweepMs: number) {
  const clock = fakeClock()
  clock.advance(50_000)
  const last = { sweepMs }
  const sweeps = createSweeps(clock, last)
  const sweepOnce = (found: Parameters<typeof sweeps.end>[0] = []): boolean => {
    sweeps.begin()
    return sweeps.end(found)
  }
  return { clock, sweeps, last, sweepOnce }
}

describe('createSweeps', () => {
  test('the first look is a sweep', () => {
    const { sweeps } = sweepsOf(0)

    expect([sweeps.isOwed, sweeps.isAllowed(), sweeps.isDue()]).toEqual([true, true, true])
  })

  test('the look after a sweep that saw everything is none', () => {
    const { sweeps, sweepOnce } = sweepsOf(0)
    sweepOnce()

    expect([sweeps.isOwed, sweeps.isDue()]).toEqual([false, false])
  })

  test('one that is owed is due at once when sweeps cost nothing', () => {
    const { sweeps, sweepOnce } = sweepsOf(0)
    sweepOnce()
    sweeps.owe()

    expect(sweeps.isDue()).toBe(true)
  })

  test('one that is owed waits for twenty times as long as the last one took', () => {
    const { clock, sweeps, sweepOnce } = sweepsOf(10)
    sweepOnce()
    sweeps.owe()
    clock.advance(199)
    const before = [sweeps.isAllowed(), sweeps.isDue()]
    clock.advance(1)

    expect(before).toEqual([false, false])
    expect([sweeps.isAllowed(), sweeps.isDue()]).toEqual([true, true])
    expect(sweeps.allowedAt()).toBe(50_200)
  })

  test('the rest counts from the end of the last one, and by what that one took', () => {
    const { clock, sweeps, last } = sweepsOf(10)
    sweeps.begin()
    clock.advance(300)
    last.sweepMs = 300
    sweeps.end([])
    sweeps.owe()

    expect(sweeps.allowedAt()).toBe(50_000 + 300 + 20 * 300)
  })

  test('while looks go on, one is due every second though none is owed', () => {
    const { clock, sweeps, sweepOnce } = sweepsOf(10)
    sweepOnce()
    clock.advance(999)
    const before = sweeps.isDue()
    clock.advance(1)

    expect([before, sweeps.isDue(), sweeps.isOwed]).toEqual([false, true, false])
  })

  test('sweeps that take longer than a twentieth of a second come less often than every second', () => {
    const { clock, sweeps, sweepOnce } = sweepsOf(100)
    sweepOnce()
    clock.advance(1_999)
    const before = sweeps.isDue()
    clock.advance(1)

    expect([before, sweeps.isDue()]).toEqual([false, true])
  })

  test('what is owed while a sweep is under way stays owed', () => {
    const { sweeps } = sweepsOf(0)
    sweeps.begin()
    const during = sweeps.isOwed
    sweeps.owe()
    sweeps.end([])

    expect([during, sweeps.isOwed]).toEqual([false, true])
  })

  test('one that came back full is still owed: it has not seen everything', () => {
    const { sweeps, sweepOnce } = sweepsOf(0)
    sweepOnce([
      { queue: 'mails', isFull: true },
      { queue: 'bills', isFull: false },
    ])

    expect(sweeps.isOwed).toBe(true)
  })

  test('one that failed is still owed: it has seen nothing', () => {
    const { sweeps, sweepOnce } = sweepsOf(0)

    expect([sweepOnce(null), sweeps.isOwed]).toEqual([false, true])
  })
})

describe('rounds of several queues', () => {
  /** Those that are named are over with this sweep. */
  const sweptOf = (...over: readonly string[]) =>
    ['orders', 'bills'].map((queue) => {
      const round = { isOver: over.includes(queue), isEmpty: false }
      return { queue, isFull: false, round }
    })

  test('are owed until each has ended once, not until all end with the same sweep', () => {
    const { sweeps, sweepOnce } = sweepsOf(0)
    const owed = [sweptOf('orders'), sweptOf(), sweptOf('bills')].map((found) => {
      const isComplete = sweepOnce(found)
      return [isComplete, sweeps.isOwed]
    })

    expect(owed).toEqual([
      [false, true],
      [false, true],
      [true, false],
    ])
  })

  test('are owed anew after all have ended: each has to end again', () => {
    const { sweepOnce } = sweepsOf(0)
    sweepOnce(sweptOf('orders', 'bills'))

    expect([sweepOnce(sweptOf('bills')), sweepOnce(sweptOf()), sweepOnce(sweptOf('orders'))]).toEqual([
      false,
      false,
      true,
    ])
  })

  test('that ended before new ones begin do not count, and neither do those of a sweep that was under way by then', () => {
    const { sweeps, sweepOnce } = sweepsOf(0)
    sweepOnce(sweptOf('orders'))
    sweeps.begin()
    sweeps.beginRound()
    sweeps.end(sweptOf('orders'))

    expect([sweepOnce(sweptOf('bills')), sweepOnce(sweptOf('orders'))]).toEqual([false, true])
  })
})
