import { describe, expect, test } from 'vitest'
import { claimMessages } from '../../packages/postbox/src/sql/claim-messages.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { extendLeases, holdsLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { draftOf, otherToken } from '../support/settle-bench.ts'
import { inMinutes, minute, minutesBetween, type StoreBench, seqsOf, token, wanted } from './store-bench.ts'

export function describeClaims(bench: StoreBench): void {
  const at = (epochMs: number) => ({ schedule: { kind: 'at', epochMs } }) as const
  const later = async (ms: number): Promise<number> => (await bench.store.snapshot()).now + ms

  describe('a claim', () => {
    // C-01
    test('takes a message that nobody holds: with its token, until the lease ends, as the first delivery', async () => {
      await bench.publish()

      expect((await bench.claim({ leaseMs: 3 * minute })).seqs).toEqual(['1'])
      expect(await bench.rows()).toMatchObject([
        { leaseToken: token, leasedUntil: 3, deliveries: 1, attempts: 0 },
      ])
    })

    test('gives everything of a message, as text', async () => {
      const body = Buffer.from([0, 255])
      const draft = draftOf({ key: 'k', timerId: 't', headers: { a: 'b' }, generation: 7, body })
      await bench.publish(draft)
      const { fences } = await bench.claim()
      await bench.run(rescheduleRetried(bench.names, [{ ...fences[0]!, delayMs: 0, error: 'bad' }], true))
      await bench.store.advance(minute)

      const { messages, queue } = await bench.claim()
      const [message] = messages
      const { now } = await bench.store.snapshot()
      const headers: unknown = JSON.parse(message!.headers!)
      expect({ ...message, headers }).toMatchObject({
        ...{ kind: 'message', queue: 'orders', id: draft.id, seq: '1', key: 'k', timer: 't' },
        ...{
          body: body.toString('base64'),
          headers: { a: 'b' },
          attempts: '1',
          deliveries: '2',
          generation: '7',
        },
      })
      const { created, first, due } = message!
      for (const time of [created, first, due]) expect(minutesBetween(now, time)).toBe(-1)
      expect(minutesBetween(now, queue.now)).toBe(0)
    })

    test('gives null for what a message does not have', async () => {
      await bench.publish()

      const { messages } = await bench.claim()

      expect(messages).toMatchObject([
        { key: null, timer: null, headers: null, first: null, generation: null, due: null },
      ])
    })

    // C-02
    test('leaves what is due later, and takes it when that has come', async () => {
      await bench.publish(inMinutes(5))

      expect((await bench.claim()).seqs).toEqual([])
      await bench.store.advance(5 * minute)
      expect((await bench.claim()).seqs).toEqual(['1'])
    })

    // C-03
    test.each([
      ['fresh', {}],
      ['due', inMinutes(1)],
    ])(
      'takes a %s message again when its lease has ended: with another token, as a suspect that is not counted',
      async (_, given) => {
        await bench.publish(given)
        await bench.store.advance(2 * minute)
        await bench.claim({ leaseMs: 3 * minute })
        await bench.store.advance(3 * minute)

        const again = await bench.claim({ token: otherToken })

        expect(again.messages).toMatchObject([{ seq: '1', deliveries: '1', suspect: 'true', attempts: '0' }])
        expect(await bench.rows()).toMatchObject([{ leaseToken: otherToken, leasedUntil: 1, deliveries: 1 }])
      },
    )

    // C-04
    test.each([
      ['fresh', {}],
      ['due', inMinutes(1)],
    ])('leaves a %s message whose lease lasts', async (_, given) => {
      await bench.publish(given)
      await bench.store.advance(2 * minute)
      await bench.claim({ leaseMs: 3 * minute })
      await bench.store.advance(2 * minute)

      expect((await bench.claim({ token: otherToken })).seqs).toEqual([])
      expect(await bench.rows()).toMatchObject([{ leaseToken: token, deliveries: 1 }])
    })

    // C-05, C-06
    test('takes no more than there is room for: what is due first, the longest overdue of it, then the oldest', async () => {
      const now = await later(0)
      for (const given of [{}, {}, at(now + 4 * minute), at(now + 2 * minute)]) await bench.publish(given)
      await bench.store.advance(5 * minute)

      const rooms = []
      for (const room of [0, 1, 2, 5]) rooms.push((await bench.claim({ room })).seqs)
      expect(rooms).toEqual([[], ['4'], ['1', '3'], ['2']])
    })

    // U-CLI-06
    test('takes the one with the lower seq first, of two that are due at the same time', async () => {
      const time = at(await later(minute))
      for (let n = 0; n < 3; n++) await bench.publish(time)
      await bench.store.advance(2 * minute)

      const taken = []
      for (let n = 0; n < 3; n++) taken.push(...(await bench.claim({ room: 1 })).seqs)
      expect(taken).toEqual(['1', '2', '3'])
    })

    // C-07
    test('takes messages of its queue, and of no other', async () => {
      for (const queue of ['orders', 'order', 'orderz', 'mails']) await bench.publish({ queue })

      expect((await bench.claim()).seqs).toEqual(['1'])
    })

    // C-08, U-CLI-06
    test('of no queue takes nothing, and of an empty one tells about it', async () => {
      await bench.publish()

      expect(await bench.run(claimMessages(bench.names, { token, queues: [] }))).toEqual([])
      const { queue, seqs } = await bench.claim({ queue: 'mails' })
      expect(seqs).toEqual([])
      expect(queue).toMatchObject({ queue: 'mails', top: '1', nextdue: null, lowest: null })
    })

    test('takes of several queues at once, of each what there is room for and for as long as it says', async () => {
      for (const queue of ['a', 'b', 'a', 'b', 'a']) await bench.publish({ queue })

      const rows = await bench.run(
        claimMessages(bench.names, {
          token,
          queues: [wanted({ queue: 'a', room: 2 }), wanted({ queue: 'b', room: 1, leaseMs: 5 * minute })],
        }),
      )

      expect(seqsOf(rows.filter((row) => row.kind === 'message'))).toEqual(['1', '2', '3'])
      expect(
        rows
          .filter(({ kind }) => kind === 'queue')
          .map(({ queue }) => queue)
          .toSorted(),
      ).toEqual(['a', 'b'])
      expect((await bench.rows()).map(({ leasedUntil }) => leasedUntil)).toEqual([1, 5, 1, null, null])
    })

    test('takes fresh messages above its cursor only, and due ones wherever they lie', async () => {
      for (const given of [{}, inMinutes(1), {}, {}]) await bench.publish(given)
      await bench.store.advance(2 * minute)

      expect((await bench.claim({ after: '3' })).seqs).toEqual(['2', '4'])
      expect((await bench.claim({ after: '2' })).seqs).toEqual(['3'])
      expect((await bench.claim()).seqs).toEqual(['1'])
    })

    test('takes due messages from its floor on, that very time included', async () => {
      const times = [await later(minute), await later(2 * minute), await later(3 * minute)]
      for (const time of times) await bench.publish(at(Math.floor(time)))
      await bench.store.advance(4 * minute)
      const [, floor] = (await bench.store.snapshot()).messages.map(({ dueAt }) => dueAt)

      expect((await bench.claim({ dueFromMs: floor! })).seqs).toEqual(['2', '3'])
      expect((await bench.claim({ dueFromMs: null })).seqs).toEqual(['1'])
    })

    test('tells when the next message is due: of those that wait, not of those that wait for ever', async () => {
      await bench.die({}, { place: 'quarantined' })
      await bench.publish({ queue: 'mails', ...inMinutes(1) })

      expect((await bench.claim()).queue.nextdue).toBeNull()
      for (const count of [7, 5, 6]) await bench.publish(inMinutes(count))
      expect(minutesBetween(0, (await bench.claim()).queue.nextdue)).toBe(5)
      await bench.store.advance(6 * minute)
      expect(minutesBetween(0, (await bench.claim()).queue.nextdue)).toBe(1)
    })

    test('tells the last seq that was given out, whoever got it and whatever became of it', async () => {
      expect((await bench.claim()).queue.top).toBe('0')
      await bench.publish({ timerId: 't' })
      await bench.publish({ timerId: 't' })
      await bench.publish({ queue: 'mails' })
      await bench.run(deleteAcked(bench.names, (await bench.claim({ queue: 'mails' })).fences))

      expect((await bench.claim()).queue.top).toBe('3')
    })

    test('tells the lowest fresh seq above its cursor when it sweeps, leased or not', async () => {
      for (const given of [inMinutes(1), { queue: 'mails' }, {}, {}]) await bench.publish(given)
      await bench.claim()

      expect((await bench.claim()).queue.lowest).toBe('3')
      expect((await bench.claim({ after: '3' })).queue.lowest).toBe('4')
      expect((await bench.claim({ after: '4' })).queue.lowest).toBeNull()
      expect((await bench.claim({ sweep: false })).queue.lowest).toBeNull()
    })

    test('leaves what is dead where it lies, however late it is', async () => {
      await bench.die({}, { place: 'quarantined' })
      await bench.store.advance(1_000 * 365 * 24 * 60 * minute)

      expect((await bench.claim()).seqs).toEqual([])
    })

    test('finds what was given back, under its old seq', async () => {
      const fences = await bench.hold(3)
      await bench.run(releaseLeases(bench.names, [fences[1]!], true))

      expect((await bench.claim({ token: otherToken })).messages).toMatchObject([
        { seq: '2', deliveries: '1' },
      ])
    })
  })

  describe('a claim of a generation', () => {
    const generations = [null, 1, 2, 3]

    test.each([
      ['fresh', {}],
      ['due', inMinutes(1)],
    ])(
      'takes %s messages of its own, of older ones and of none, and of newer ones nothing',
      async (_, given) => {
        for (const generation of generations) await bench.publish({ ...given, generation })
        await bench.store.advance(2 * minute)

        expect((await bench.claim({ generation: 2 })).seqs).toEqual(['1', '2', '3'])
        expect((await bench.claim({ generation: 2 })).seqs).toEqual([])
        expect((await bench.rows())[3]).toMatchObject({ deliveries: 0, leaseToken: null, attempts: 0 })
        expect((await bench.claim({ generation: 3 })).seqs).toEqual(['4'])
      },
    )

    test('takes all there is, when it has none itself', async () => {
      for (const generation of generations) await bench.publish({ generation })

      expect((await bench.claim({ generation: null })).seqs).toEqual(['1', '2', '3', '4'])
    })

    test('fills its room from behind newer messages', async () => {
      for (const generation of [2, 2, 1, 2, 1, 1]) await bench.publish({ generation })

      expect((await bench.claim({ generation: 1, room: 2 })).seqs).toEqual(['3', '5'])
    })

    test.each([
      ['fresh', {}],
      ['due', inMinutes(1)],
    ])('leaves a newer %s message whose lease has ended to code of that generation', async (_, given) => {
      await bench.publish({ ...given, generation: 2 })
      await bench.store.advance(2 * minute)
      await bench.claim({ generation: 2, leaseMs: minute })
      await bench.store.advance(2 * minute)

      expect((await bench.claim({ generation: 1, token: otherToken })).seqs).toEqual([])
      expect((await bench.claim({ generation: 2, token: otherToken })).messages).toMatchObject([
        { deliveries: '1', suspect: 'true' },
      ])
    })

    test('tells the lowest seq and the next due time of messages that it may take', async () => {
      const scheduled = [5, 6].map((minutes, nth) => ({ ...inMinutes(minutes), generation: 2 - nth }))
      for (const given of [{ generation: 2 }, { generation: 1 }, ...scheduled]) await bench.publish(given)

      const { queue } = await bench.claim({ generation: 1 })
      const newer = await bench.claim({ generation: 2 })

      expect([queue.lowest, minutesBetween(0, queue.nextdue)]).toEqual(['2', 6])
      expect([newer.queue.lowest, minutesBetween(0, newer.queue.nextdue)]).toEqual(['1', 5])
      expect((await bench.claim({ generation: 0 })).queue).toMatchObject({ lowest: null, nextdue: null })
    })

    test('looks through a hundred newer messages for the next due time, and tells that of the last when none is its own', async () => {
      for (let n = 1; n <= 101; n++) await bench.publish({ ...inMinutes(n), generation: 2 })
      await bench.publish({ ...inMinutes(200), generation: 1 })

      expect(minutesBetween(0, (await bench.claim({ generation: 1 })).queue.nextdue)).toBe(100)
      await bench.store.advance(2 * minute)
      expect(minutesBetween(0, (await bench.claim({ generation: 1 })).queue.nextdue)).toBe(198)
    })
  })

  describe('a lease', () => {
    const extend = (leaseMs: number, as = token) =>
      bench.run(extendLeases(bench.names, [{ seq: '1', token: as, leaseMs }]))
    const holds = async (as = token) =>
      seqsOf(await bench.run(holdsLeases(bench.names, [{ seq: '1', token: as }])))

    test('ends as much later as it is told, counted from now, for its holder only', async () => {
      for (let n = 0; n < 2; n++) await bench.publish()
      await bench.claim({ leaseMs: 10 * minute })
      await bench.store.advance(3 * minute)

      expect(await extend(9 * minute, otherToken)).toEqual([])
      expect(await extend(5 * minute)).toEqual([{ seq: '1' }])
      expect(await bench.rows()).toMatchObject([
        { leasedUntil: 5, leaseToken: token, deliveries: 1 },
        { leasedUntil: 7, leaseToken: token },
      ])
    })

    test('that has ended is its holder’s until somebody claims the message', async () => {
      await bench.hold()
      await bench.store.advance(2 * minute)

      expect(await holds()).toEqual(['1'])
      expect(await extend(minute)).toEqual([{ seq: '1' }])
      await bench.store.advance(2 * minute)
      await bench.claim({ token: otherToken })
      expect([await extend(minute), await holds(), await holds(otherToken)]).toEqual([[], [], ['1']])
    })

    test('is nobody’s when it was given back, and none of a message that is gone', async () => {
      const fences = await bench.hold()
      await bench.run(releaseLeases(bench.names, fences, true))
      expect([await extend(minute), await holds()]).toEqual([[], []])

      await bench.run(deleteAcked(bench.names, (await bench.claim()).fences))
      expect([await extend(minute), await holds()]).toEqual([[], []])
    })

    test('may be one of many: each is extended by its own time, and told once', async () => {
      const fences = await bench.hold(3)
      const extensions = fences.map((fence, n) => ({ ...fence, leaseMs: (n + 2) * minute }))

      const written = await bench.run(extendLeases(bench.names, extensions.slice(0, 2)))

      expect(seqsOf(written)).toEqual(['1', '2'])
      expect((await bench.rows()).map(({ leasedUntil }) => leasedUntil)).toEqual([2, 3, 1])
      expect(seqsOf(await bench.run(holdsLeases(bench.names, fences)))).toEqual(['1', '2', '3'])
      expect(await bench.run(extendLeases(bench.names, []))).toEqual([])
      expect(await bench.run(holdsLeases(bench.names, []))).toEqual([])
    })
  })
}
