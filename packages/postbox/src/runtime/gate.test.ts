import { describe, expect, test } from 'vitest'
import { idle } from '../../../../tests/support/dispatcher-bench.ts'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { createGate, type NextSuspect } from './gate.ts'

/** A gate, and suspects that run until they are told to end. */
function gateOf() {
  const [clock, halt] = [fakeClock(), new AbortController()]
  const gate = createGate(clock, halt.signal)
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  /** What has suspects of these names. */
  const line = (...names: string[]) => {
    const next: NextSuspect = () => {
      const name = names.shift()
      if (name === undefined) return null
      begun.push(name)
      const over = new Promise<void>((resolve) => ends.set(name, resolve))
      return { over, isRepeated: name.startsWith('old') }
    }
    const ask = (): Promise<void> => {
      gate.isolate(next)
      return idle()
    }
    return { next, ask, add: (name: string) => void names.push(name) }
  }
  const end = (name: string): Promise<void> => {
    ends.get(name)?.()
    return idle()
  }
  const pass = (ms: number): Promise<void> => {
    clock.advance(ms)
    return idle()
  }
  const isOpen = (): boolean => gate.mayStart(() => {})
  /** An ordinary handler that starts whenever it may, as one that others wait behind. */
  const eager = () => {
    const counts = { started: 0 }
    const start = (): void => {
      if (!gate.mayStart(start)) return
      counts.started++
      gate.started()
    }
    return { counts, start }
  }
  return { gate, clock, halt, begun, line, end, pass, isOpen, eager }
}

describe('a gate', () => {
  test('is open while nobody is suspected, and asks no clock', () => {
    const { clock, isOpen } = gateOf()

    expect([isOpen(), clock.asked]).toEqual([true, []])
  })

  test('is closed from the moment that somebody asks, until his suspect is over', async () => {
    const { gate, begun, line, end, isOpen } = gateOf()
    const { next } = line('a')
    gate.isolate(next)
    const closed = isOpen()
    await idle()
    const during = [isOpen(), [...begun]]
    await end('a')

    expect([closed, during, isOpen(), begun]).toEqual([false, [false, ['a']], true, ['a']])
  })

  test('waits until those that run have ended', async () => {
    const { gate, clock, begun, line, pass } = gateOf()
    gate.started()
    gate.started()
    await line('a').ask()
    gate.ended()
    await pass(500)
    const before = [...begun]
    gate.ended()
    await idle()

    expect([before, begun, clock.asked[0]]).toEqual([[], ['a'], 1_000])
  })

  test('waits for them a second at most', async () => {
    const { gate, begun, line, pass } = gateOf()
    gate.started()
    await line('a').ask()
    await pass(999)
    const before = [...begun]
    await pass(1)

    expect([before, begun]).toEqual([[], ['a']])
  })

  test('is closed for the first second of a suspect, and then calls those who asked to start', async () => {
    const { begun, line, pass, eager } = gateOf()
    const other = eager()
    await line('a').ask()
    other.start()
    await pass(999)
    const before = other.counts.started
    await pass(1)

    expect([before, other.counts.started, begun]).toEqual([0, 1, ['a']])
  })

  test('lets suspects of all who ask in by turns, one at a time, and does not open in between', async () => {
    const { clock, begun, line, end, eager } = gateOf()
    const other = eager()
    const [a, b] = [line('a1', 'a2', 'a3'), line('b1', 'b2')]
    await Promise.all([a.ask(), b.ask()])
    other.start()
    for (const name of ['a1', 'b1', 'a2', 'b2']) {
      clock.advance(10)
      await end(name)
    }
    const before = other.counts.started
    await end('a3')

    expect([begun, before, other.counts.started]).toEqual([['a1', 'b1', 'a2', 'b2', 'a3'], 0, 1])
  })

  test('begins no turn after a second of them, and opens for as long as it was closed when others want to work', async () => {
    const { begun, line, end, pass, eager } = gateOf()
    const other = eager()
    await line('a', 'b', 'c').ask()
    other.start()
    await pass(600)
    await end('a')
    await pass(700)
    await end('b')
    const opened = [other.counts.started, [...begun]]
    await pass(1_299)
    const still = [...begun]
    await pass(1)
    // It has not ended, and is waited for.
    const waiting = [...begun]
    await pass(1_000)

    expect([opened, still, waiting, begun]).toEqual([
      [1, ['a', 'b']],
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'b', 'c'],
    ])
  })

  test('goes on at once after a second of turns when nobody else wants to work', async () => {
    const { begun, line, end, pass } = gateOf()
    await line('a', 'b').ask()
    await pass(1_000)
    await end('a')

    expect(begun).toEqual(['a', 'b'])
  })

  test('begins the next one behind a slow one when that has had its second', async () => {
    const { begun, line, pass } = gateOf()
    await line('slow', 'next').ask()
    await pass(999)
    const before = [...begun]
    await pass(1)

    expect([before, begun]).toEqual([['slow'], ['slow', 'next']])
  })

  test('behind one that has done it before, begins the next when it is over, ten seconds after it opened at the latest', async () => {
    const [slow, quick] = [gateOf(), gateOf()]
    for (const { line, pass } of [slow, quick]) {
      await line('old', 'next').ask()
      await pass(1_000)
      await pass(9_999)
    }
    const before = [[...slow.begun], slow.isOpen()]
    await slow.pass(1)
    await quick.end('old')

    expect([before, slow.begun, quick.begun]).toEqual([
      [['old'], true],
      ['old', 'next'],
      ['old', 'next'],
    ])
  })

  test('forgets who has no suspect left, or no slot for one; he may ask again', async () => {
    const { begun, line, end, isOpen } = gateOf()
    const empty = line()
    await empty.ask()
    const before = isOpen()
    empty.add('a')
    await idle()
    const unasked = [...begun]
    await empty.ask()
    await end('a')

    expect([before, unasked, begun, isOpen()]).toEqual([true, [], ['a'], true])
  })

  test.each(['waits for those that run', 'is closed for a suspect'])(
    'that %s opens when all is to stop, begins nothing more and leaves no sleep behind',
    async (how) => {
      const { gate, clock, halt, begun, line, pass, isOpen } = gateOf()
      if (how.startsWith('waits')) gate.started()
      await line('a', 'b').ask()
      const before = begun.length
      halt.abort()
      await pass(0)

      expect([isOpen(), clock.left, begun.length - before]).toEqual([true, [], 0])
      await line('c').ask()
      expect([isOpen(), begun.includes('c')]).toEqual([true, false])
    },
  )
})
