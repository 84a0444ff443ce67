import { getEventListeners } from 'node:events'
import { describe, expect, test } from 'vitest'
import type { LazyController } from './lazy-controller.ts'
import { createSignals } from './signals.ts'

/** A delivery that runs until it is told to end. */
function delivery(): { readonly work: (controller: LazyController) => Promise<AbortSignal>; end(): void } {
  let end = (): void => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return { work: ({ signal }) => ended.then(() => signal), end }
}

describe('createSignals', () => {
  test('gives each delivery a signal of its own', async () => {
    const signals = createSignals(new AbortController().signal)
    const given = await Promise.all([1, 2, 3].map(() => signals.during(async ({ signal }) => signal)))

    expect(new Set(given).size).toBe(3)
    expect(given.map((signal) => signal.aborted)).toEqual([false, false, false])
  })

  test('abandon aborts the signals of all that run, with its reason', async () => {
    const abandon = new AbortController()
    const signals = createSignals(abandon.signal)
    const deliveries = [delivery(), delivery()]
    const running = deliveries.map(({ work }) => signals.during(work))
    const reason = new Error('time is up')
    abandon.abort(reason)
    for (const { end } of deliveries) end()

    const given = await Promise.all(running)
    expect(given.map((signal) => signal.reason)).toEqual([reason, reason])
  })

  test('a delivery that begins after abandon finds its signal aborted, with the reason', async () => {
    const reason = new Error('time is up')
    const signals = createSignals(AbortSignal.abort(reason))
    const seen = await signals.during(async ({ signal }) => [signal.aborted, signal.reason])

    expect(seen).toEqual([true, reason])
  })

  test('a delivery can be aborted by itself: its neighbours and those that come later go on', async () => {
    const signals = createSignals(new AbortController().signal)
    const neighbour = delivery()
    const running = signals.during(neighbour.work)
    const reason = new Error('lease lost')
    const own = await signals.during(async (controller) => {
      controller.abort(reason)
      return controller.signal
    })
    neighbour.end()
    const [during, later] = [await running, await signals.during(async ({ signal }) => signal)]

    expect(own.reason).toBe(reason)
    expect([during.aborted, later.aborted]).toEqual([false, false])
  })

  test.each(['ended', 'failed'])('the signal of a delivery that has %s is left alone', async (end) => {
    const abandon = new AbortController()
    const signals = createSignals(abandon.signal)
    const given: AbortSignal[] = []
    const work = async ({ signal }: LazyController): Promise<void> => {
      given.push(signal)
      if (end === 'failed') throw new Error('failed')
    }
    await Promise.allSettled([signals.during(work)])
    abandon.abort()

    expect(given.map((signal) => signal.aborted)).toEqual([false])
  })

  test('a hundred deliveries leave at most one listener on abandon, those that run included', async () => {
    const abandon = new AbortController()
    const signals = createSignals(abandon.signal)
    const running = delivery()
    const hundred = Array.from({ length: 100 }, () => signals.during(running.work))
    const during = getEventListeners(abandon.signal, 'abort').length
    running.end()
    await Promise.all(hundred)

    expect(during).toBeLessThanOrEqual(1)
    expect(getEventListeners(abandon.signal, 'abort').length).toBeLessThanOrEqual(1)
  })

  test('what the work gives or throws is passed on', async () => {
    const signals = createSignals(new AbortController().signal)

    await expect(signals.during(async () => 42)).resolves.toBe(42)
    await expect(signals.during(() => Promise.reject(new Error('mine')))).rejects.toThrow('mine')
  })
})
