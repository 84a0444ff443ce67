import { describe, expect, test } from 'vitest'
import { leaseOf } from '../../../../tests/support/delivery-bench.ts'
import {
  dispatcherOf,
  idle,
  leased,
  leasedUpTo,
  type Run,
  seqsOf,
} from '../../../../tests/support/dispatcher-bench.ts'
import type { FailpointName } from './failpoint.ts'
import type { Held } from './held.ts'

describe('the slots of a dispatcher', () => {
  test('no more handlers run at once than allowed; the next starts when one ends, in order', async () => {
    const { dispatcher, runs, take } = dispatcherOf({ concurrency: 2 })
    await take(leasedUpTo(4))
    const first = [seqsOf(runs), dispatcher.running]
    await runs[1]!.end()
    const second = [seqsOf(runs), dispatcher.running]
    await runs[0]!.end()

    expect([first, second]).toEqual([
      [['1', '2'], 2],
      [['1', '2', '3'], 2],
    ])
    expect(seqsOf(runs)).toEqual(['1', '2', '3', '4'])
  })

  test('handlers for which there is no breath left start when it comes back, in order', async () => {
    let left = 2
    const again = new Set<() => void>()
    const mayStart = (next: () => void): boolean => left-- > 0 || !again.add(next)
    const { dispatcher, runs, take } = dispatcherOf({ concurrency: 5 }, { breath: { mayStart } })
    await take(leasedUpTo(4))
    const first = [seqsOf(runs), dispatcher.running, dispatcher.waiting]
    left = 2
    for (const next of again) next()
    await idle()

    expect(first).toEqual([['1', '2'], 2, 2])
    expect(seqsOf(runs)).toEqual(['1', '2', '3', '4'])
  })

  test('no handler runs within the call that takes its message: all of them are under way by then, and no one is yet', async () => {
    const { dispatcher, runs } = dispatcherOf({ concurrency: 2 })
    dispatcher.take(leasedUpTo(2))
    const within = [runs.length, dispatcher.running]
    await idle()

    expect([within, seqsOf(runs)]).toEqual([
      [0, 2],
      ['1', '2'],
    ])
  })

  test('what became of a handler is told with its message: acknowledged, or failed with what it threw', async () => {
    const { runs, finished, take } = dispatcherOf({ concurrency: 2 })
    await take(leasedUpTo(2))
    const bad = new Error('bad')
    await runs[1]!.fail(bad)
    await runs[0]!.end()

    expect(finished).toEqual([
      ['2', { kind: 'fail', error: bad, isShared: false }],
      ['1', { kind: 'ack', followOns: [] }],
    ])
  })

  test('says that room was made after each handler that ends, when the slot has been filled again', async () => {
    const { dispatcher, runs, counts, take } = dispatcherOf({ concurrency: 1, prefetch: 1 })
    await take(leasedUpTo(2))
    const before = counts.roomMade
    await runs[0]!.end()
    const between = [counts.roomMade, dispatcher.running]
    await runs[1]!.end()

    expect([before, between, counts.roomMade]).toEqual([0, [1, 1], 2])
  })

  test.each<[string, (one: Held) => void]>([
    [
      'whose lease ends now',
      (one) => {
        one.deadline = 500
      },
    ],
    [
      'that was lost',
      (one) => {
        one.isLost = true
      },
    ],
  ])('a message %s while it waited is not started and given back; the next one starts', async (_, change) => {
    const { clock, runs, unstarted, take } = dispatcherOf({ concurrency: 1, prefetch: 2 })
    const [first, second, third] = leasedUpTo(3) as [Held, Held, Held]
    await take([first, second, third])
    clock.advance(500)
    change(second)
    await runs[0]!.end()

    expect([seqsOf(runs), unstarted]).toEqual([['1', '3'], ['2']])
  })

  test('a message is started up to the last millisecond of its lease', async () => {
    const { clock, runs, unstarted, take } = dispatcherOf({ concurrency: 1 })
    clock.advance(29_999)
    await take([leased(1)])

    expect([seqsOf(runs), unstarted]).toEqual([['1'], []])
  })

  test('the failpoints lie around the handler, which keeps its slot while it is held there', async () => {
    const reached: FailpointName[] = []
    const held: (() => void)[] = []
    const reach = (name: FailpointName): Promise<void> => {
      reached.push(name)
      return new Promise((resolve) => held.push(resolve))
    }
    const { dispatcher, runs, finished, take } = dispatcherOf({ concurrency: 1 }, { failpoint: { reach } })
    await take([leased(1)])
    const before = [runs.length, dispatcher.running]
    held[0]!()
    await idle()
    await runs[0]!.end()
    const after = [finished.length, dispatcher.running]
    held[1]!()
    await idle()

    expect(reached).toEqual(['before_handler', 'after_handler'])
    expect([before, after, finished.length, dispatcher.running]).toEqual([[0, 1], [0, 1], 1, 0])
  })
})

describe('the room of a dispatcher', () => {
  test('is its slots and the prefetch of its options, less what runs and waits', async () => {
    const { dispatcher, runs, take } = dispatcherOf({ concurrency: 2, prefetch: 3 })
    const rooms = [dispatcher.room]
    await take(leasedUpTo(4))
    rooms.push(dispatcher.room)
    await runs[0]!.end()
    rooms.push(dispatcher.room)

    expect(rooms).toEqual([5, 1, 2])
  })

  test('a prefetch of the options stays as it is, however fast or slow handlers are', async () => {
    const fast = dispatcherOf({ concurrency: 1, prefetch: 3 })
    const slow = dispatcherOf({ concurrency: 1, prefetch: 3 })
    await fast.runEach(5, 0)
    await slow.runEach(5, 60_000)

    expect([fast.dispatcher.room, slow.dispatcher.room]).toEqual([4, 4])
  })

  test('before anything was measured nothing is claimed ahead', () => {
    expect(dispatcherOf({ concurrency: 7 }).dispatcher.room).toBe(7)
  })

  test('grows for fast handlers: as many ahead as they do in 20 ms', async () => {
    const { dispatcher, runEach } = dispatcherOf({ concurrency: 5 })
    await runEach(1, 2)

    expect(dispatcher.room).toBe(5 + 50)
  })

  test('slow handlers get nothing ahead', async () => {
    const { dispatcher, runEach } = dispatcherOf({ concurrency: 5 })
    await runEach(1, 101)

    expect(dispatcher.room).toBe(5)
  })

  test('handlers that become slow lose what was claimed ahead, and those that become fast get it back', async () => {
    const { dispatcher, runEach } = dispatcherOf({ concurrency: 5 })
    const rooms: number[] = []
    for (const ms of [2, 1_000, 2]) {
      await runEach(40, ms)
      rooms.push(dispatcher.room)
    }

    // A new value counts a fifth: after forty of 2 ms the average is 2.13.
    expect(rooms).toEqual([55, 5, 51])
  })

  test('large bodies are not claimed ahead beyond 8 MiB', async () => {
    const { dispatcher, runEach } = dispatcherOf({ concurrency: 5 })
    await runEach(1, 0, new Uint8Array(1024 * 1024))

    expect(dispatcher.room).toBe(5 + 8)
  })

  test('is never below zero when the prefetch shrinks under what waits', async () => {
    const { dispatcher, clock, runs, take } = dispatcherOf({ concurrency: 1 })
    await take(leasedUpTo(4))
    clock.advance(1_000)
    await runs[0]!.end()

    expect([dispatcher.running, dispatcher.room, dispatcher.wantsMore]).toEqual([1, 0, false])
  })

  test.each([
    [10, 5],
    [3, 2],
    [1, 1],
    [0, 1],
  ])('with a prefetch of %i more is wanted as soon as there is room for %i', async (prefetch, least) => {
    const { dispatcher, take } = dispatcherOf({ concurrency: 2, prefetch })
    const wanted: number[] = []
    for (let room = dispatcher.room; room > 0; room--) {
      if (dispatcher.wantsMore) wanted.push(room)
      await take([leased(room)])
    }

    expect(Math.min(...wanted)).toBe(least)
    expect([dispatcher.room, dispatcher.wantsMore]).toEqual([0, false])
  })
})

describe('a handler that is told to give up', () => {
  test('timeoutMs aborts its signal, fails it and frees its slot though the handler never ends', async () => {
    const { dispatcher, clock, runs, finished, counts, take } = dispatcherOf({
      concurrency: 1,
      timeoutMs: 300,
    })
    await take(leasedUpTo(2))
    clock.advance(299)
    await idle()
    const before = [runs[0]!.context.signal.aborted, runs.length]
    clock.advance(1)
    await idle()

    const error = expect.objectContaining({ code: 'OUTBOX_HANDLER_TIMEOUT' })
    expect([before, clock.asked]).toEqual([
      [false, 1],
      [300, 300],
    ])
    expect(runs[0]!.context.signal.reason).toEqual(error)
    expect(finished).toEqual([['1', { kind: 'fail', error, isShared: false }]])
    expect([seqsOf(runs), dispatcher.running, counts.roomMade]).toEqual([['1', '2'], 1, 1])
  })

  test('what a handler does after its time is up changes nothing', async () => {
    const { dispatcher, clock, runs, finished, take } = dispatcherOf({ concurrency: 1, timeoutMs: 300 })
    await take([leased(1)])
    clock.advance(300)
    await idle()
    await runs[0]!.end()

    expect([finished.length, dispatcher.running]).toEqual([1, 0])
  })

  test.each<[string, (run: Run) => Promise<void>]>([
    ['succeeds', (run) => run.end()],
    ['fails', (run) => run.fail(new Error('bad'))],
  ])('a handler that %s in time is not aborted later, and leaves no timer', async (_, end) => {
    const { clock, runs, finished, take } = dispatcherOf({ concurrency: 1, timeoutMs: 300 })
    await take([leased(1)])
    await end(runs[0]!)
    const left = clock.left
    clock.advance(300)
    await idle()

    expect([left, runs[0]!.context.signal.aborted, finished.length]).toEqual([[], false, 1])
  })

  test('without timeoutMs the clock is not asked', async () => {
    const { clock, take } = dispatcherOf({ concurrency: 1 })
    await take([leased(1)])

    expect(clock.asked).toEqual([])
  })

  test('the abort of a held message reaches its handler, and no other', async () => {
    const { runs, finished, take } = dispatcherOf({ concurrency: 2 })
    const [first, second] = leasedUpTo(2) as [Held, Held]
    await take([first, second])
    const reason = new Error('lost')
    first.abort(reason)

    expect(runs.map(({ context }) => context.signal.reason)).toEqual([reason, undefined])
    expect(finished).toEqual([])
  })

  test('the abort of a message that waits or has ended reaches nobody', async () => {
    const { runs, take } = dispatcherOf({ concurrency: 1, prefetch: 1 })
    const [first, second] = leasedUpTo(2) as [Held, Held]
    await take([first, second])
    second.abort(new Error('waits'))
    await runs[0]!.end()
    first.abort(new Error('has ended'))

    expect(runs.map(({ context }) => context.signal.aborted)).toEqual([false, false])
  })

  test('when the process gives up, all handlers are told, with its reason', async () => {
    const { abandon, runs, take } = dispatcherOf({ concurrency: 2 })
    await take(leasedUpTo(2))
    const reason = new Error('time is up')
    abandon.abort(reason)

    expect(runs.map(({ context }) => context.signal.reason)).toEqual([reason, reason])
  })
})

describe('a dispatcher that was closed', () => {
  test('gives back what waits, starts nothing, and lets what runs finish', async () => {
    const { dispatcher, runs, finished, unstarted, take } = dispatcherOf({ concurrency: 1, prefetch: 2 })
    await take(leasedUpTo(3))
    dispatcher.close()
    const given = [...unstarted]
    await runs[0]!.end()

    expect(given).toEqual(['2', '3'])
    expect([seqsOf(runs), finished, unstarted]).toEqual([
      ['1'],
      [['1', { kind: 'ack', followOns: [] }]],
      ['2', '3'],
    ])
  })

  test('gives back what comes later, has no room and wants no more', async () => {
    const { dispatcher, runs, unstarted, take } = dispatcherOf({ concurrency: 5 })
    dispatcher.close()
    await take(leasedUpTo(2))

    expect([seqsOf(runs), unstarted]).toEqual([[], ['1', '2']])
    expect([dispatcher.room, dispatcher.wantsMore]).toEqual([0, false])
  })
})

describe('giving a queue back', () => {
  test('what waits of it was never started; what runs, and what is of other queues, goes on', async () => {
    const queues = ['orders', 'mails']
    const { dispatcher, runs, unstarted, finished, take } = dispatcherOf(
      { concurrency: 1, prefetch: 5 },
      { queues },
    )
    await take([leased(1), leased(2), leaseOf({ seq: '3', queue: 'mails' }), leased(4)])
    const waiting = dispatcher.waiting
    dispatcher.giveBack('orders')

    expect([waiting, unstarted, dispatcher.waiting, dispatcher.room]).toEqual([3, ['2', '4'], 1, 4])
    await runs[0]!.end()
    await runs[1]!.end()
    expect([seqsOf(runs), finished.map(([seq]) => seq)]).toEqual([
      ['1', '3'],
      ['1', '3'],
    ])
  })
})
