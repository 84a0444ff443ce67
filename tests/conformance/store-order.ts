import { describe, expect, test } from 'vitest'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { longestRun } from '../../packages/postbox/src/sql/claim-in-order.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { extendLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { mostKeyLooks } from '../../packages/postbox/src/sql/first-rows.ts'
import { mostKeyLocks } from '../../packages/postbox/src/sql/lock-keys.ts'
import { pauseFrom } from '../../packages/postbox/src/sql/pause-state.ts'
import { parkDead, quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { readPauses } from '../../packages/postbox/src/sql/read-pauses.ts'
import { registerQueues } from '../../packages/postbox/src/sql/register-queues.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import { otherToken } from '../support/settle-bench.ts'
import { minute, type StoreBench } from './store-bench.ts'
import { orderBench } from './store-order-bench.ts'

/** Queues that are in the order of their keys. */
export function describeOrder(bench: StoreBench): void {
  const order = orderBench(bench)
  const death = { reason: 'rejected', error: 'bad', attempts: 1 }
  const later = async (fences: Parameters<typeof releaseLeases>[1], minutes = 5) =>
    bench.run(
      rescheduleRetried(
        bench.names,
        fences.map((fence) => ({ ...fence, delayMs: minutes * minute, error: 'no' })),
        false,
      ),
    )

  describe('a claim in order', () => {
    test('takes the first of each key and what has none, the oldest first, as many as there is room for', async () => {
      await order.publish(['a', 'a', 'b', 'a', null, 'c'])

      expect((await order.claim({ room: 2 })).seqs).toEqual(['1', '3'])
      expect((await order.claim({ room: 2 })).seqs).toEqual(['5', '6'])
      expect((await order.claim()).seqs).toEqual([])
    })

    test('shares the room that is left out among the keys: what is right behind their first', async () => {
      await order.publish(['a', 'a', 'b', 'a', 'b', 'b', 'a'])

      const { messages } = await order.claim({ room: 6 })

      expect(messages.map(({ key, seq }) => `${key}${seq}`)).toEqual(['a1', 'a2', 'b3', 'a4', 'b5', 'b6'])
    })

    test(`gives all of the room to one key, and no more than ${longestRun} rows`, async () => {
      await order.publish(Array(longestRun + 20).fill('a'))

      expect((await order.claim({ room: 7 })).seqs).toHaveLength(7)
      await bench.store.advance(2 * minute)
      expect((await order.claim({ token: otherToken })).seqs).toHaveLength(longestRun)
    })

    test('leaves what stands behind one that is leased, and takes other keys', async () => {
      await order.publish(['a', 'a', 'b'])
      await order.claim({ room: 1 })

      expect((await order.claim({ token: otherToken })).seqs).toEqual(['3'])
    })

    test('takes a first whose lease has ended, and those behind it as far as theirs have, too', async () => {
      await order.publish(['a', 'a', 'a', 'a'])
      const { fences } = await order.claim()
      await bench.store.advance(2 * minute)
      await bench.run(extendLeases(bench.names, [{ ...fences[2]!, leaseMs: minute }]))

      expect((await order.claim({ token: otherToken })).seqs).toEqual(['1', '2'])
    })

    test('leaves what stands behind one that is to be tried later, and when that is due, too: it has failed before', async () => {
      await order.publish(['a', 'a'])
      await later((await order.claim({ room: 1 })).fences)

      const { seqs, queue } = await order.claim()
      expect([seqs, Math.round(Number(queue.nextdue) / minute)]).toEqual([[], 5])
      await bench.store.advance(5 * minute)
      expect((await order.claim()).seqs).toEqual(['1'])
    })

    test('leaves what stands behind one that was put back for later, until that is gone: it may be put back again', async () => {
      await order.publish(['a', 'a', 'a'])
      const { fences } = await order.claim({ room: 1 })
      await bench.run(snoozeMessages(bench.names, [{ ...fences[0]!, delayMs: minute }], false))
      await bench.store.advance(minute)
      const again = await order.claim({ token: otherToken })
      const leased = (await bench.rows()).map(({ leaseToken }) => leaseToken !== null)
      await bench.run(deleteAcked(bench.names, again.fences, { isQuick: false }))

      expect([again.seqs, leased]).toEqual([['1'], [true, false, false]])
      expect((await order.claim()).seqs).toEqual(['2', '3'])
    })

    test('ends a run before one that is to be tried later', async () => {
      await order.publish(['a', 'a', 'a'])
      const { fences } = await order.claim()
      await later([fences[1]!])
      await bench.run(releaseLeases(bench.names, [fences[0]!, fences[2]!], false))

      expect((await order.claim()).seqs).toEqual(['1'])
    })

    test('takes what is due before what is fresh', async () => {
      await order.publish(['a', 'b'])
      await later((await order.claim()).fences.slice(1), 1)
      await bench.store.advance(2 * minute)

      expect((await order.claim({ room: 1, token: otherToken })).seqs).toEqual(['2'])
    })

    test('leaves what is of a newer generation, and all that stands behind it', async () => {
      await order.publish(['a'], { generation: 1 })
      await order.publish(['a', 'b'], { generation: 2 })
      await order.publish(['a', 'b'])

      expect((await order.claim({ generation: 1 })).seqs).toEqual(['1'])
      expect((await order.claim({ generation: 2, token: otherToken })).seqs).toEqual(['3', '5'])
    })

    test('leaves other queues alone, and takes nothing where there is nothing', async () => {
      await order.publish(['a'], { queue: 'orders' })
      await bench.publish({ queue: 'mails', key: 'a' })

      expect((await order.claim()).seqs).toEqual(['1'])
      expect((await order.claim({ queue: 'letters' })).queue).toMatchObject({
        ...{ queue: 'letters', reached: null, more: 'false', lastkey: null, joining: '0', nextdue: null },
      })
    })

    test('counts a delivery, and leases for the time that was asked for', async () => {
      await order.publish(['a'])
      await order.claim({ leaseMs: 3 * minute })

      expect(await bench.rows()).toMatchObject([{ key: 'a', leasedUntil: 3, deliveries: 1, attempts: 0 }])
    })
  })

  describe.runIf(bench.kind.isDatabase)('a claim in order looks', () => {
    test('right behind what was settled, whatever lies elsewhere', async () => {
      await order.publish(['a', 'b', 'a'])
      const { fences } = await order.claim({ room: 1 })
      await bench.run(deleteAcked(bench.names, fences, { isQuick: true }))

      const nowhere = { after: '1000', keysFrom: null }
      expect((await order.claim({ ...nowhere, keys: [{ key: 'a', after: '1' }] })).seqs).toEqual(['3'])
      expect((await order.claim({ ...nowhere, keys: [{ key: 'c', after: '1' }] })).seqs).toEqual([])
    })

    test('at fresh rows above its cursor alone, and tells how far it came', async () => {
      await order.publish(['a', 'b', 'c', 'd'])

      const { seqs, queue } = await order.claim({ room: 1, after: '1', keysFrom: null })

      expect([seqs, queue.reached, queue.more]).toEqual([['2'], '2', 'true'])
      const next = await order.claim({ after: '3', keysFrom: null })
      expect([next.seqs, next.queue.reached, next.queue.more]).toEqual([['4'], '4', 'false'])
    })

    test('at the first rows of keys behind the one that it is told, wherever they lie', async () => {
      await order.publish(['a', 'b', 'b', 'c'])

      const { seqs, queue } = await order.claim({ after: '1000', keysFrom: 'a' })
      expect([seqs, queue.lastkey]).toEqual([['2', '3', '4'], null])
    })

    test(`at ${mostKeyLooks} keys at most, and tells where the next look goes on`, async () => {
      const keys = Array.from({ length: mostKeyLooks + 1 }, (_, n) => `k${String(n).padStart(5, '0')}`)
      await order.publish(keys)

      const { queue } = await order.claim({ room: 1, after: '5000' })
      expect(queue.lastkey).toBe(keys[mostKeyLooks - 1])
      const rest = await order.claim({ after: '5000', keysFrom: queue.lastkey, token: otherToken })
      expect([rest.messages.map(({ key }) => key), rest.queue.lastkey]).toEqual([[keys.at(-1)], null])
    })

    test('at the queues that others have written down as ordered', async () => {
      const mine = { ordered: ['orders'], others: ['mails'] }
      expect(await bench.run(registerQueues(bench.names, mine))).toEqual([])
      expect(await bench.run(registerQueues(bench.names, mine))).toEqual([])
      const yours = { ordered: [], others: ['mails', 'orders'] }
      expect(await bench.run(registerQueues(bench.names, yours))).toEqual([{ name: 'orders' }])
    })
  })

  test('a claim without regard to keys takes nothing of a queue that is in their order, in either lane, and says so', async () => {
    await bench.publish({ schedule: { kind: 'after', delayMs: minute } })
    await bench.publish({ schedule: { kind: 'after', delayMs: 9 * minute } })
    await order.publish(['a', null])
    await bench.publish({ queue: 'mails', key: 'a' })
    await bench.run(registerQueues(bench.names, { ordered: ['orders'], others: [] }))
    await bench.store.advance(2 * minute)

    const { seqs, queue } = await bench.claim()

    expect([seqs, queue.nextdue]).toEqual([[], null])
    expect(pauseFrom(queue.pause)).toMatchObject({ isPaused: true, isMismatch: true })
    expect((await bench.claim({ queue: 'mails' })).seqs).toEqual(['5'])
    const { queue: inOrder, seqs: taken } = await order.claim()
    expect([taken, inOrder.pause]).toEqual([['1', '3', '4'], null])
  })

  test('who asks how it stands with queues hears of an order that it does not know of, and of no other', async () => {
    await bench.run(registerQueues(bench.names, { ordered: ['orders', 'bills'], others: [] }))

    const rows = await bench.run(readPauses(bench.names, ['orders', 'bills', 'mails'], ['orders', 'mails']))

    const told = rows.map(({ queue, pause }) => [queue, pauseFrom(pause)?.isMismatch ?? null])
    expect(Object.fromEntries(told)).toEqual({ orders: true, bills: null, mails: null })
  })

  describe('a dead message', () => {
    test('that is parked is dead where it lies, and holds its key', async () => {
      await order.publish(['a', 'a', 'b'])
      const { fences } = await order.claim({ room: 1 })

      const parked = await bench.run(parkDead(bench.names, [{ ...fences[0]!, ...death }]))

      expect(parked).toEqual([{ seq: '1' }])
      expect((await bench.rows())[0]).toMatchObject({
        ...{ failedAt: 0, parkedAt: 0, dueAt: Number.POSITIVE_INFINITY, failureReason: 'rejected' },
        ...{ leaseToken: null, leasedUntil: null, attempts: 1 },
      })
      expect((await order.claim()).seqs).toEqual(['3'])
    })

    test('is parked by the holder of its lease alone', async () => {
      await order.publish(['a'])
      await order.claim()

      expect(await bench.run(parkDead(bench.names, [{ seq: '1', token: otherToken, ...death }]))).toEqual([])
      expect(await bench.rows()).toMatchObject([{ failedAt: null, parkedAt: null }])
    })

    test('that is quarantined does not hold its key', async () => {
      await order.publish(['a', 'a'])
      const { fences } = await order.claim({ room: 1 })
      await bench.run(quarantineDead(bench.names, [{ ...fences[0]!, ...death }]))

      expect((await order.claim()).seqs).toEqual(['2'])
      expect((await bench.rows())[0]).toMatchObject({ failedAt: 0, parkedAt: null })
    })

    test('that is skipped is noted on the next of its key that waits, and on no other', async () => {
      await order.publish(['a', 'b', 'a', 'a'])
      const { messages, fences } = await order.claim({ room: 2 })
      await bench.run(buryDead(bench.names, [{ ...fences[0]!, ...death, isNoted: true }]))

      const next = await order.claim({ token: otherToken })
      expect(next.messages.map(({ seq, afterdead }) => [seq, afterdead])).toEqual([
        ['3', messages[0]!.id],
        ['4', null],
      ])
      expect((await bench.rows()).map(({ afterDead }) => afterDead)).toEqual([null, messages[0]!.id, null])
    })

    test('that is not to be noted is not, and nobody notes what comes later', async () => {
      await order.publish(['a', 'a'])
      const { fences } = await order.claim()
      await bench.run(buryDead(bench.names, [{ ...fences[0]!, ...death }]))
      await bench.run(buryDead(bench.names, [{ ...fences[1]!, ...death, isNoted: true }]))
      await order.publish(['a'])

      expect((await order.claim()).messages).toMatchObject([{ seq: '3', afterdead: null }])
    })
  })

  describe('a message for later', () => {
    const inMinutes = (count: number) => ({ schedule: { kind: 'after', delayMs: count * minute } }) as const

    test('keeps nobody waiting, and takes its place at the end of its key when it is due', async () => {
      await order.publish(['a'], inMinutes(5))
      await order.publish(['a', 'a'])
      expect(await order.waiting()).toEqual(['(a)', 'a:2', 'a:3'])
      expect([await order.join(), (await order.claim({ room: 1 })).seqs]).toEqual([0, ['2']])

      await bench.store.advance(5 * minute)
      const { seqs, queue } = await order.claim({ token: otherToken, room: 1 })

      // The lease of the first has ended, too: what joins is not taken for one that is due.
      expect([seqs, queue.joining, await order.join()]).toEqual([['2'], '1', 1])
      expect(await order.waiting()).toEqual(['a:2', 'a:3', 'a:4'])
      expect((await bench.rows()).at(-1)).toMatchObject({ dueAt: null, laterKey: null, deliveries: 0 })
    })

    test('joins behind one that was due earlier, whichever was published first', async () => {
      const [late] = await order.publish(['a'], inMinutes(5))
      const [early] = await order.publish(['a'], inMinutes(3))
      await order.publish(['b'], inMinutes(9))
      await bench.store.advance(5 * minute)

      expect([await order.join(), await order.join()]).toEqual([2, 0])
      const rows = await bench.rows()
      expect(rows.map(({ id }) => id).slice(1)).toEqual([early!.id, late!.id])
      expect(await order.waiting()).toEqual(['(b)', 'a:4', 'a:5'])
    })

    test('stays with a process that claimed it before the order was written down, until its lease has ended', async () => {
      await order.publish(['a', 'b'], inMinutes(5))
      await bench.store.advance(5 * minute)
      expect((await bench.claim({ room: 1 })).seqs).toEqual(['1'])

      expect([await order.join(), await order.waiting()]).toEqual([1, ['(a)', 'b:3']])
      await bench.store.advance(2 * minute)
      expect([await order.join(), await order.waiting()]).toEqual([1, ['b:3', 'a:4']])
    })

    test('can be cancelled and replaced until it is due, and has its name when it has joined', async () => {
      const timer = { timerId: 't', conflict: 'keep', ...inMinutes(5) } as const
      await order.publish(['a'], timer)
      expect(await bench.cancel('t')).toBe(true)
      await order.publish(['a'], timer)
      await order.publish(['b'], { ...timer, conflict: 'replace', ...inMinutes(1) })
      await bench.store.advance(minute)

      expect(await order.join()).toBe(1)
      expect(await bench.rows()).toMatchObject([{ key: 'b', timerId: 't' }])
      expect((await order.claim()).messages).toMatchObject([{ key: 'b', timer: 't' }])
    })

    test('that is replaced by one without a key has none', async () => {
      const timer = { timerId: 't', conflict: 'replace', isOrdered: true, ...inMinutes(5) } as const
      await order.publish(['b'], timer)
      await order.publish([null], timer)
      expect(await bench.rows()).toMatchObject([{ key: null, laterKey: null }])
    })

    test('that replaces a timer which has joined goes to the end of its key', async () => {
      const timer = { timerId: 't', conflict: 'keep' } as const
      await order.publish(['a'], timer)
      await order.publish(['a'])
      const [replacing] = await order.publish(['a'], { ...timer, conflict: 'replace' })
      expect((await order.claim({ room: 1 })).seqs).toEqual(['2'])

      expect(await order.join()).toBe(1)
      expect((await bench.rows()).at(-1)).toMatchObject({ id: replacing!.id, key: 'a', laterKey: null })
    })
  })

  test(`of more than ${mostKeyLocks} keys, one statement publishes all`, async () => {
    const keys = Array.from({ length: mostKeyLocks + 1 }, (_, n) => `k${n}`)

    const written = await order.publish(keys)

    expect(written).toHaveLength(keys.length)
    expect((await bench.rows()).map(({ key }) => key)).toEqual(keys)
  })
}
