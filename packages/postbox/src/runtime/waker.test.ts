import { describe, expect, test } from 'vitest'
import { resolveNames } from '../sql/names.ts'
import type { LaidDown } from '../sql/sleep.ts'
import type { Statement } from '../sql/statement.ts'
import { createWaker } from './waker.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })

interface Circumstances {
  readonly isQuiet?: boolean
  /** What happens while a statement is under way. */
  readonly during?: (name: string) => unknown
}

/** A waker over a connection that answers at once, with a record of what it was asked. */
function wakerOf({ isQuiet = true, during }: Circumstances = {}) {
  const sent: string[][] = []
  /** Queues with a publisher that stayed quiet and has not ended. */
  const busy = new Set<string>()
  const listener = {
    ear: 1 as number | null,
    run: async <Row>({ name, values }: Statement<Row>): Promise<readonly Row[]> => {
      const queues = JSON.parse(values[0] as string) as string[]
      sent.push([name, ...queues])
      await during?.(name)
      const rows: LaidDown[] = queues.map((queue) => ({ queue, clear: String(!busy.has(queue)) }))
      return rows as unknown as readonly Row[]
    },
  }
  let owed = 0
  const oweSweep = (): void => {
    owed++
  }
  /** How many sweeps came to be owed while the work was done. */
  const owedBy = async (work: () => Promise<unknown>): Promise<number> => {
    const before = owed
    await work()
    return owed - before
  }
  return { waker: createWaker({ listener, names, isQuiet, oweSweep }), listener, sent, busy, owedBy }
}

describe('lieDown', () => {
  test('lies down once per queue, on all that are new with one statement', async () => {
    const { waker, sent } = wakerOf()
    await waker.lieDown(['a', 'b'])
    await waker.lieDown(['b', 'a'])
    await waker.lieDown(['a', 'c', 'b'])

    expect(sent).toEqual([
      ['lie_down', 'a', 'b'],
      ['lie_down', 'c'],
    ])
  })

  test('asks again about those that were not clear, and about no others', async () => {
    const { waker, sent, busy } = wakerOf()
    busy.add('b')
    await waker.lieDown(['a', 'b'])
    await waker.lieDown(['a', 'b', 'c'])
    busy.delete('b')
    await waker.lieDown(['a', 'b', 'c'])
    await waker.lieDown(['a', 'b', 'c'])

    expect(sent).toEqual([
      ['lie_down', 'a', 'b'],
      ['lie_down', 'c'],
      ['check_clear', 'b'],
      ['check_clear', 'b'],
    ])
  })

  test('is safe only when all of the queues are clear', async () => {
    const { waker, busy } = wakerOf()
    busy.add('b')
    const withBusy = [await waker.lieDown(['a', 'b']), await waker.lieDown(['b', 'a'])]
    const withoutBusy = await waker.lieDown(['a'])
    busy.delete('b')
    const later = await waker.lieDown(['a', 'b'])

    expect(withBusy).toEqual([false, false])
    expect([withoutBusy, later]).toEqual([true, true])
  })

  test('owes a sweep whenever a queue becomes clear, and none for a queue that is not or was before', async () => {
    const { waker, busy, owedBy } = wakerOf()
    await waker.lieDown([])
    busy.add('a')
    const unclear = await owedBy(() => waker.lieDown(['a']))
    const other = await owedBy(() => waker.lieDown(['a', 'b']))
    busy.delete('a')
    const cleared = await owedBy(() => waker.lieDown(['a', 'b']))
    const again = await owedBy(() => waker.lieDown(['a', 'b']))

    expect({ unclear, other, cleared, again }).toEqual({ unclear: 0, other: 1, cleared: 1, again: 0 })
  })

  test('on a new connection owes a sweep and lies down again on everything: the locks went with the old one', async () => {
    const { waker, listener, sent, busy, owedBy } = wakerOf()
    const first = await owedBy(() => waker.lieDown([]))
    await waker.lieDown(['a', 'b'])
    listener.ear = 2
    busy.add('a').add('b')
    const second = await owedBy(() => waker.lieDown(['a', 'b']))

    expect([first, second]).toEqual([1, 1])
    expect(sent).toEqual([
      ['lie_down', 'a', 'b'],
      ['lie_down', 'a', 'b'],
    ])
  })

  test.each([null, 2])('is not safe when the connection was lost meanwhile (now %s)', async (now) => {
    const { waker, listener } = wakerOf({
      during: () => {
        listener.ear = now
      },
    })

    expect(await waker.lieDown(['a'])).toBe(false)
  })

  test('a failure is "not safe" and never an exception; afterwards it is tried again', async () => {
    const failing = new Set(['lie_down'])
    const { waker, sent, busy } = wakerOf({
      during: (name) => {
        if (failing.has(name)) throw new Error('Connection terminated')
      },
    })
    busy.add('a')
    const whenLyingDown = await waker.lieDown(['a'])
    failing.clear()
    await waker.lieDown(['a'])
    failing.add('check_clear')
    const whenChecking = await waker.lieDown(['a'])
    failing.clear()
    busy.clear()

    expect([whenLyingDown, whenChecking, await waker.lieDown(['a'])]).toEqual([false, false, true])
    expect(sent.map(([name]) => name)).toEqual(['lie_down', 'lie_down', 'check_clear', 'check_clear'])
  })
})

describe('getUp', () => {
  test('lets go of the queues it lies on, and says nothing of the others', async () => {
    const { waker, sent } = wakerOf()
    await waker.lieDown(['a', 'b'])
    waker.getUp(['c'])
    waker.getUp(['c', 'b'])
    waker.getUp(['b'])

    expect(sent.slice(1)).toEqual([['get_up', 'b']])
  })

  test('lets go of a queue that was not clear yet, too: its lock is held all the same', async () => {
    const { waker, sent, busy } = wakerOf()
    busy.add('a')
    await waker.lieDown(['a'])
    waker.getUp(['a'])

    expect(sent.slice(1)).toEqual([['get_up', 'a']])
  })

  test('before it lies down again it takes the lock anew, and owes another sweep', async () => {
    const { waker, sent, owedBy } = wakerOf()
    await waker.lieDown(['a'])
    waker.getUp(['a'])
    const owed = await owedBy(() => waker.lieDown(['a']))

    expect(owed).toBe(1)
    expect(sent.map(([name]) => name)).toEqual(['lie_down', 'get_up', 'lie_down'])
  })

  test.each([null, 2])('says nothing on another connection, which never lay down (now %s)', async (now) => {
    const { waker, listener, sent } = wakerOf()
    await waker.lieDown(['a'])
    listener.ear = now
    waker.getUp(['a'])

    expect(sent).toEqual([['lie_down', 'a']])
  })

  test('a failure is nobody’s concern: the connection is lost, and its locks with it', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): unknown => unhandled.push(reason)
    process.on('unhandledRejection', note)
    const { waker } = wakerOf({
      during: (name) => {
        if (name === 'get_up') throw new Error('Connection terminated')
      },
    })
    await waker.lieDown(['a'])
    waker.getUp(['a'])
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)

    expect(unhandled).toEqual([])
  })
})

describe('close', () => {
  test('lets go of every queue it lies on, clear or not', async () => {
    const { waker, sent, busy } = wakerOf()
    busy.add('b')
    await waker.lieDown(['a', 'b', 'c'])
    waker.getUp(['c'])
    waker.close()
    waker.close()

    expect(sent.slice(2)).toEqual([['get_up', 'a', 'b']])
  })

  test('lets go of the queues that it is lying down on this moment: nobody would, later', async () => {
    let answer = (): void => {}
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    const { waker, sent, owedBy } = wakerOf({ during: (name) => (name === 'lie_down' ? answered : null) })
    const lying = waker.lieDown(['a'])
    waker.close()
    const owed = await owedBy(async () => {
      answer()
      await lying
    })

    expect(sent).toEqual([
      ['lie_down', 'a'],
      ['get_up', 'a'],
    ])
    expect([await lying, owed]).toEqual([false, 0])
  })

  test('says nothing when it lies on none', () => {
    const { waker, sent } = wakerOf()
    waker.close()

    expect(sent).toEqual([])
  })
})

describe('publishers that always notify', () => {
  test('make it safe to sleep without any lock, after a sweep for each connection', async () => {
    const { waker, listener, sent, owedBy } = wakerOf({ isQuiet: false })
    const first = await owedBy(() => waker.lieDown(['a']))
    const again = await owedBy(() => waker.lieDown(['a']))
    waker.getUp(['a'])
    listener.ear = 2
    const second = await owedBy(() => waker.lieDown(['a']))

    expect(await waker.lieDown(['a', 'b'])).toBe(true)
    expect([first, again, second]).toEqual([1, 0, 1])
    expect(sent).toEqual([])
  })
})

describe('while nobody listens', () => {
  test.each([true, false])('it is never safe, and nothing is sent (quiet: %s)', async (isQuiet) => {
    const { waker, listener, sent } = wakerOf({ isQuiet })
    listener.ear = null
    const safe = await waker.lieDown(['a'])
    waker.getUp(['a'])
    waker.close()

    expect([safe, sent]).toEqual([false, []])
  })

  test.each([true, false])(
    'because nobody ever will, it is never safe either (quiet: %s)',
    async (isQuiet) => {
      const waker = createWaker({ listener: null, names, isQuiet, oweSweep: () => {} })
      const safe = await waker.lieDown(['a'])
      waker.getUp(['a'])

      expect(safe).toBe(false)
    },
  )
})
