import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { createAlarms } from './alarms.ts'

const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function alarmsOf() {
  const clock = fakeClock()
  const alarms = createAlarms(clock)
  const rang: string[] = []
  const set = (name: string, ms: number) => alarms.set(ms, () => rang.push(name))
  const pass = (ms: number): Promise<void> => {
    clock.advance(ms)
    return idle()
  }
  return { clock, alarms, rang, set, pass }
}

describe('createAlarms', () => {
  test('rings once, when the time has come, and not before', async () => {
    const { rang, set, pass } = alarmsOf()
    set('a', 300)
    await pass(299)
    const before = [...rang]
    await pass(1)
    await pass(1_000)

    expect([before, rang]).toEqual([[], ['a']])
  })

  test('rings when a sleep has ended by itself, though the clock says that a fraction is left', async () => {
    const rang: string[] = []
    const sleeps = [Promise.resolve()]
    const early = { now: () => 0, sleep: () => sleeps.pop() ?? new Promise<void>(() => {}) }
    createAlarms(early).set(300, () => rang.push('a'))
    await idle()

    expect(rang).toEqual(['a'])
  })

  test('sleeps once for all that are set while it sleeps', async () => {
    const { clock, rang, set, pass } = alarmsOf()
    set('a', 300)
    await pass(100)
    for (const name of ['b', 'c']) set(name, 300)
    await pass(200)

    expect([rang, clock.asked]).toEqual([['a'], [300, 100]])
    await pass(100)
    expect([rang, clock.left]).toEqual([['a', 'b', 'c'], []])
  })

  test('rings earlier for one that is set later and has less time', async () => {
    const { rang, set, pass } = alarmsOf()
    set('slow', 300)
    set('quick', 50)
    await idle()
    await pass(50)
    const early = [...rang]
    await pass(250)

    expect([early, rang]).toEqual([['quick'], ['quick', 'slow']])
  })

  test('what was cleared does not ring, and the others do', async () => {
    const { alarms, rang, set, pass } = alarmsOf()
    const first = set('a', 300)
    set('b', 400)
    alarms.clear(first)
    await pass(400)

    expect(rang).toEqual(['b'])
  })

  test('does not sleep when all are cleared: nothing keeps the process alive', async () => {
    const { clock, alarms, set } = alarmsOf()
    for (const alarm of [set('a', 300), set('b', 300)]) alarms.clear(alarm)

    expect(clock.left).toEqual([])
  })

  test.each(['at once', 'later'])('rings again for what is set after all were cleared, %s', async (when) => {
    const { alarms, rang, set, pass } = alarmsOf()
    alarms.clear(set('a', 300))
    if (when === 'later') await idle()
    set('b', 500)
    await idle()
    await pass(499)
    const before = [...rang]
    await pass(1)

    expect([before, rang]).toEqual([[], ['b']])
  })

  // A handler's listener may write to a log or a trace that is told by it.
  test('rings in the context of whoever set it, and not in that of who was the first to set one', async () => {
    const { clock, alarms } = alarmsOf()
    const whose = new AsyncLocalStorage<string>()
    const rang: unknown[] = []
    for (const name of ['a', 'b'])
      whose.run(name, () => alarms.set(300, () => rang.push([name, whose.getStore()])))
    clock.advance(300)
    await idle()

    expect(rang).toEqual([
      ['a', 'a'],
      ['b', 'b'],
    ])
  })
})
