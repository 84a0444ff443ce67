import { describe, expect, test } from 'vitest'
import { leaseOf, leasesUpTo } from '../../../../tests/support/delivery-bench.ts'
import { dispatcherOf, leased, leasedUpTo, seqsOf } from '../../../../tests/support/dispatcher-bench.ts'
import type { Held } from './held.ts'

const bad = new Error('bad')
const ack = { kind: 'ack', followOns: [] }
const together = { kind: 'fail', error: bad, isShared: true }

/** Delivered so often without an outcome, before this time. */
const silent = (seq: number, times: number): Held =>
  leaseOf({ seq: `${seq}`, attempt: 1, deliveries: 1 + times })

describe('messages that were delivered too often without an outcome', () => {
  test('are finished without being run, without `dispatched` and without a duration; the others run', async () => {
    const { dispatcher, runs, finished, durations, told, take } = dispatcherOf({
      concurrency: 1,
      maxDeliveries: 3,
    })
    await take([silent(1, 3), silent(2, 2), silent(3, 4)])
    await runs[0]!.end()

    expect([seqsOf(runs), durations, dispatcher.running]).toEqual([['2'], [null, null, 0], 0])
    expect(finished).toEqual([
      ['1', { kind: 'exhausted' }],
      ['3', { kind: 'exhausted' }],
      ['2', ack],
    ])
    expect(told).toEqual([expect.objectContaining({ kind: 'dispatched', seq: '2' })])
  })

  test('failed attempts are not counted', async () => {
    const { runs, take } = dispatcherOf({ maxDeliveries: 3 })
    await take([leaseOf({ attempt: 9, deliveries: 9 })])

    expect(seqsOf(runs)).toEqual(['1'])
  })

  test('maxDeliveries: null runs them however often', async () => {
    const { runs, take } = dispatcherOf({ maxDeliveries: null })
    await take([silent(1, 1_000)])

    expect(seqsOf(runs)).toEqual(['1'])
  })

  test('one that was lost meanwhile is not finished: its end is not ours to write', async () => {
    const { runs, finished, unstarted, take } = dispatcherOf({ maxDeliveries: 3 })
    const one = silent(1, 3)
    one.isLost = true
    await take([one])

    expect([runs, finished, unstarted]).toEqual([[], [], ['1']])
  })

  test('they take no room', async () => {
    const { dispatcher, take } = dispatcherOf({ concurrency: 2, prefetch: 0, maxDeliveries: 1 })
    await take([silent(1, 1), silent(2, 1)])

    expect([dispatcher.room, dispatcher.running]).toEqual([2, 0])
  })
})

describe('what a dispatcher tells', () => {
  test('`dispatched` once for each message, when its handler starts', async () => {
    const { runs, told, take } = dispatcherOf({ concurrency: 1 })
    await take([leaseOf({ seq: '1', attempt: 2, deliveries: 2 }), leased(2, new Uint8Array(5))])
    const before = [...told]
    await runs[0]!.end()
    await runs[1]!.end()

    const about = { kind: 'dispatched', queue: 'orders', isSuspect: false }
    const first = { ...about, id: 'id-1', seq: '1', attempt: 2, deliveries: 2, bytes: 7 }
    const second = { ...about, id: 'id-2', seq: '2', attempt: 1, deliveries: 1, bytes: 5 }
    expect([before, told]).toEqual([[first], [first, second]])
  })

  test('`dispatched` for each message of a batch', async () => {
    const { told, take } = dispatcherOf({}, { batches: { size: 2, maxWaitMs: 50 } })
    await take(leasesUpTo(2))

    expect(told).toMatchObject([
      { kind: 'dispatched', seq: '1' },
      { kind: 'dispatched', seq: '2' },
    ])
  })

  test('nothing, when nobody hears it', async () => {
    const { runs, told, take } = dispatcherOf({}, { isHeard: false })
    await take(leasedUpTo(2))

    expect([runs.length, told]).toEqual([2, []])
  })

  test('how long each handler ran, with its end', async () => {
    const { clock, runs, durations, take } = dispatcherOf({ concurrency: 2 })
    await take([leased(1)])
    clock.advance(30)
    await take([leased(2)])
    clock.advance(5)
    await runs[1]!.fail(bad)
    clock.advance(5)
    await runs[0]!.end()

    expect(durations).toEqual([5, 40])
  })
})

describe('a dispatcher of several queues', () => {
  test('runs one handler for all of them within the same slots, and tells of each message its own queue', async () => {
    const queues = ['orders', 'returns']
    const { dispatcher, runs, finished, told, take } = dispatcherOf({ concurrency: 2 }, { queues })
    await take([leaseOf({ seq: '1' }), leaseOf({ seq: '2', queue: 'returns' }), leaseOf({ seq: '3' })])
    const first = [seqsOf(runs), dispatcher.running]
    for (const run of [0, 1, 2]) await runs[run]!.end()

    expect(first).toEqual([['1', '2'], 2])
    expect(finished.map(([seq]) => seq)).toEqual(['1', '2', '3'])
    expect(told.map((event) => 'queue' in event && event.queue)).toEqual(['orders', 'returns', 'orders'])
  })
})

const inThrees = { batches: { size: 3, maxWaitMs: 50 } }

describe('a dispatcher of batches', () => {
  test('no more batches run at once than allowed, full ones at once; a slot is one batch', async () => {
    const { dispatcher, runs, counts, take } = dispatcherOf({ concurrency: 2 }, inThrees)
    await take(leasesUpTo(10))
    const before = [seqsOf(runs), dispatcher.running]
    await runs[0]!.end()

    expect([before, seqsOf(runs), dispatcher.running, counts.roomMade]).toEqual([
      [['1 2 3', '4 5 6'], 2],
      ['1 2 3', '4 5 6', '7 8 9'],
      2,
      1,
    ])
  })

  test('one that is not full starts by itself when it has waited long enough', async () => {
    const { clock, runs, take } = dispatcherOf({}, inThrees)
    await take(leasesUpTo(2))
    const before = runs.length
    clock.advance(50)
    await take([])

    expect([before, seqsOf(runs)]).toEqual([0, ['1 2']])
  })

  test('one whose time came while all slots were taken starts with the next slot', async () => {
    const { clock, runs, take } = dispatcherOf({ concurrency: 1 }, inThrees)
    await take(leasesUpTo(4))
    clock.advance(50)
    await take([])
    const before = seqsOf(runs)
    await runs[0]!.end()

    expect([before, seqsOf(runs)]).toEqual([['1 2 3'], ['1 2 3', '4']])
  })

  test('each message gets its own outcome, and the duration of the whole', async () => {
    const { clock, runs, finished, durations, take } = dispatcherOf({}, inThrees)
    await take(leasesUpTo(3))
    clock.advance(20)
    await runs[0]!.fail(bad)

    expect(finished).toEqual([
      ['1', together],
      ['2', together],
      ['3', together],
    ])
    expect(durations).toEqual([20, 20, 20])
  })

  test('those that were lost, are over, or were delivered too often are left out of their batch', async () => {
    const { runs, finished, unstarted, take } = dispatcherOf(
      { maxDeliveries: 1 },
      { batches: { size: 4, maxWaitMs: 50 } },
    )
    const helds = [...leasesUpTo(4), silent(5, 1)]
    helds[1]!.isLost = true
    helds[2]!.deadline = 0
    await take(helds)

    expect([seqsOf(runs), unstarted, finished]).toEqual([['1 4'], ['2', '3'], [['5', { kind: 'exhausted' }]]])
  })

  test('a batch of which nothing is left takes no slot, and the next one starts', async () => {
    const { dispatcher, runs, unstarted, counts, take } = dispatcherOf({ concurrency: 1 }, inThrees)
    const helds = leasesUpTo(6)
    for (const one of helds.slice(0, 3)) one.isLost = true
    await take(helds)

    expect([seqsOf(runs), unstarted, dispatcher.running]).toEqual([['4 5 6'], ['1', '2', '3'], 1])
    expect(counts.roomMade).toBe(0)
  })

  test('the lost lease of one message tells the handler of the whole batch', async () => {
    const { runs, take } = dispatcherOf({}, inThrees)
    const helds = leasesUpTo(6)
    await take(helds)
    helds[4]!.abort(bad)

    expect(runs.map(({ context }) => context.signal.reason)).toEqual([undefined, bad])
  })

  test('its room is slots times size, and a batch ahead, less the messages that run and wait', async () => {
    const { dispatcher, runs, take } = dispatcherOf({ concurrency: 2 }, inThrees)
    const rooms = [dispatcher.room]
    await take(leasesUpTo(8))
    rooms.push(dispatcher.room)
    await runs[0]!.end()
    rooms.push(dispatcher.room)

    expect(rooms).toEqual([2 * 3 + 3, 1, 4])
  })

  test('a prefetch of the options stands instead of the batch ahead', () => {
    expect(dispatcherOf({ concurrency: 2, prefetch: 4 }, inThrees).dispatcher.room).toBe(2 * 3 + 4)
  })

  test('batches of one are claimed ahead by the time that they take, like single messages', async () => {
    const { dispatcher, runEach } = dispatcherOf({ concurrency: 5 }, { batches: { size: 1, maxWaitMs: 0 } })
    const before = dispatcher.room
    await runEach(1, 2)

    expect([before, dispatcher.room]).toEqual([5, 5 + 50])
  })

  test('close gives back what waits to become a batch, and starts it never', async () => {
    const { dispatcher, clock, runs, unstarted, take } = dispatcherOf({}, inThrees)
    await take(leasesUpTo(2))
    dispatcher.close()
    const left = clock.left
    clock.advance(50)
    await take([])

    expect([runs, unstarted, left]).toEqual([[], ['1', '2'], []])
  })
})
