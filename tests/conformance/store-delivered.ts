import { describe, expect, test } from 'vitest'
import type { DeliveredPageQuery } from '../../packages/postbox/src/core/delivered-options.ts'
import { historyFrom } from '../../packages/postbox/src/core/failure-history.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { getDelivered } from '../../packages/postbox/src/sql/get-delivered.ts'
import { type DeliveredRow, listDelivered } from '../../packages/postbox/src/sql/list-delivered.ts'
import { purgeDelivered } from '../../packages/postbox/src/sql/purge-delivered.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { draftOf, otherToken } from '../support/settle-bench.ts'
import { collector } from '../support/signals.ts'
import { minute, minutesBetween, type StoreBench, seqsOf, token } from './store-bench.ts'
import { outboxBench } from './store-outbox-bench.ts'

const any: DeliveredPageQuery['query'] = { queue: null, key: null, sinceMs: null, untilMs: null }

export function describeDelivered(bench: StoreBench): void {
  const { open } = outboxBench(bench)
  const list = (query: Partial<typeof any> = {}, page: Partial<DeliveredPageQuery> = {}) =>
    bench.run(listDelivered(bench.names, { query: { ...any, ...query }, limit: 100, after: null, ...page }))
  const keysOf = (rows: readonly DeliveredRow[]): string => rows.map(({ key }) => key).join('')
  const purge = async (olderThanMs: number, limit = 100): Promise<string> =>
    (await bench.run(purgeDelivered(bench.names, { olderThanMs, limit })))[0]!.purged
  const deliver = async (given: Parameters<StoreBench['publish']>[0]): Promise<void> => {
    await bench.publish(given)
    const { fences } = await bench.claim({ queue: given?.queue ?? 'orders' })
    await bench.run(deleteAcked(bench.names, fences, { delivered: 'table' }))
  }

  describe.each(['plain', 'with follow-ons'])('an acknowledgement, %s', (how) => {
    const acknowledge = (fences: readonly { readonly seq: string; readonly token: string }[]) => {
      if (how === 'plain') return bench.run(deleteAcked(bench.names, fences, { delivered: 'table' }))
      const settled = fences.map((fence) => ({ ...fence, followOns: [draftOf({ queue: 'mails' })] }))
      return bench.run(deleteWithFollowOns(bench.names, { settled, wake: 'always', delivered: 'table' }))
    }

    test('moves a message to the delivered ones, with everything that it had', async () => {
      const own = { key: 'k', timerId: 't', headers: { a: 'b' }, generation: 7, body: Buffer.from([0, 255]) }
      const draft = draftOf(own)
      const fences = await bench.hold([draft])
      await bench.run(rescheduleRetried(bench.names, [{ ...fences[0]!, delayMs: 0, error: 'no' }], true))
      await bench.store.advance(3 * minute)
      const { fences: again } = await bench.claim()

      expect(await acknowledge(again)).toMatchObject([{ seq: '1' }])

      const { messages, dead, delivered, now } = await bench.store.snapshot()
      expect(delivered).toMatchObject([
        {
          ...{ seq: '1', originalSeq: '1', id: draft.id, queue: 'orders', key: 'k', timerId: 't' },
          ...{ body: 'AP8=', headers: { a: 'b' }, generation: 7, attempts: 1, deliveries: 2 },
          failureHistory: null,
        },
      ])
      const [{ createdAt, deliveredAt }] = delivered as [(typeof delivered)[0]]
      expect([createdAt, deliveredAt].map((time) => minutesBetween(now, time))).toEqual([-3, 0])
      expect([messages.filter(({ queue }) => queue === 'orders'), dead]).toEqual([[], []])
      expect(messages.filter(({ queue }) => queue === 'mails')).toHaveLength(how === 'plain' ? 0 : 1)
    })

    test('by whoever has lost the lease keeps nothing and publishes nothing', async () => {
      const [first, second, third] = await bench.hold(3)

      const written = await acknowledge([first!, { ...second!, token: otherToken }, third!])

      expect(seqsOf(written)).toEqual(['1', '3'])
      const { messages, delivered } = await bench.store.snapshot()
      expect(delivered.map(({ originalSeq }) => originalSeq)).toEqual(['1', '3'])
      expect(messages.filter(({ queue }) => queue === 'orders')).toMatchObject([
        { seq: '2', leaseToken: token },
      ])
      expect(messages.filter(({ queue }) => queue === 'mails')).toHaveLength(how === 'plain' ? 0 : 2)
    })

    test('that is rolled back has kept nothing', async () => {
      const fences = await bench.hold(1)
      const undo = new Error('undo')
      const work = bench.store.database.transaction(async (tx) => {
        await tx.run(deleteAcked(bench.names, fences, { delivered: 'table' }))
        throw undo
      })

      await expect(work).rejects.toThrow(undo)
      expect(await bench.store.snapshot()).toMatchObject({ messages: [{ seq: '1' }], delivered: [] })
    })
  })

  test('none is kept where they are deleted', async () => {
    await bench.run(deleteAcked(bench.names, await bench.hold(2)))

    expect((await bench.store.snapshot()).delivered).toEqual([])
  })

  test('one that was replayed before tells of it', async () => {
    const id = await bench.die({}, { error: 'first life' })
    const replay = { id, by: 'me', generation: null, delayMs: 0, historyLimit: 20, wake: 'always' } as const
    await bench.run(replayDeadLetter(bench.names, replay))
    await bench.run(deleteAcked(bench.names, (await bench.claim()).fences, { delivered: 'table' }))

    const [row] = await list()
    expect(historyFrom(row!.history)).toMatchObject({ cycles: [{ error: 'first life', replayedBy: 'me' }] })
  })

  test('they are listed newest first, as text, and chosen by queue, key and time', async () => {
    for (const [key, queue] of Object.entries({ a: 'orders', b: 'mails', c: 'orders' })) {
      await deliver({ key, queue })
      await bench.store.advance(5 * minute)
    }
    const { now } = await bench.store.snapshot()
    const chosen = async (query: Partial<typeof any>): Promise<string> => keysOf(await list(query))

    expect(await chosen({})).toBe('cba')
    expect(await chosen({ queue: 'orders' })).toBe('ca')
    expect(await chosen({ queue: 'none' })).toBe('')
    expect(await chosen({ key: 'b' })).toBe('b')
    expect(await chosen({ sinceMs: now - 12 * minute })).toBe('cb')
    expect(await chosen({ untilMs: now - 7 * minute })).toBe('ba')
    expect(await chosen({ sinceMs: now - 12 * minute, untilMs: now - 7 * minute })).toBe('b')
    const [row] = await list({ key: 'a' })
    expect(row).toMatchObject({
      ...{ seq: '1', queue: 'orders', key: 'a', timer: null, headers: null, body: 'e30=' },
      ...{ attempts: '0', deliveries: '1', generation: null, history: null },
    })
    expect([row!.created, row!.delivered].map((time) => minutesBetween(now, time))).toEqual([-15, -15])
    expect(row!.micros).toBe(String(Math.round(Number(row!.delivered) * 1_000)))
    const exact = Number(row!.delivered)
    expect([keysOf(await list({ sinceMs: exact })), keysOf(await list({ untilMs: exact }))]).toEqual([
      'cba',
      '',
    ])
  })

  test('pages follow one another without a gap and without a repetition, though many were delivered at once', async () => {
    await deliver({ key: 'a' })
    await bench.store.advance(minute)
    await bench.run(
      deleteAcked(bench.names, await bench.hold(['b', 'c', 'd'].map((key) => ({ key }))), {
        delivered: 'table',
      }),
    )
    await bench.store.advance(minute)
    await deliver({ key: 'e' })

    for (const limit of [1, 2, 3, 4, 5]) {
      let keys = ''
      let after: DeliveredPageQuery['after'] = null
      do {
        const rows: readonly DeliveredRow[] = await list({}, { limit, after })
        keys += keysOf(rows.slice(0, limit))
        const last: DeliveredRow | undefined = rows.length > limit ? rows[limit - 1] : undefined
        after = last === undefined ? null : { deliveredMicros: last.micros, seq: last.seq }
      } while (after !== null && keys.length < 9)
      expect([limit, keys]).toEqual([limit, 'edcba'])
    }
  })

  test('one is read by its id, in any case of letters: the newest of it', async () => {
    const { id } = draftOf()
    const get = async (given: string) => keysOf(await bench.run(getDelivered(bench.names, given)))
    await bench.publish({ id, key: 'waiting', queue: 'mails' })
    const before = await get(id)
    for (const key of ['a', 'b']) {
      await deliver({ id, key })
      await bench.store.advance(minute)
    }

    expect([before, await get(id.toUpperCase())]).toEqual(['', 'b'])
  })

  test('what is old enough is purged, the oldest first and no more at once than was asked for', async () => {
    for (const key of ['a', 'b', 'c', 'd']) {
      await deliver({ key })
      await bench.store.advance(10 * minute)
    }

    expect(await purge(15 * minute, 2)).toBe('2')
    expect(keysOf(await list())).toBe('dc')
    expect([await purge(15 * minute), keysOf(await list())]).toEqual(['1', 'd'])
    expect([await purge(15 * minute), keysOf(await list())]).toEqual(['0', 'd'])
    expect([await purge(0), keysOf(await list())]).toEqual(['1', ''])
  })

  if (bench.kind.hasSessions)
    test('a purge steps over what another purges', async () => {
      await bench.run(deleteAcked(bench.names, await bench.hold(3), { delivered: 'table' }))
      const other = await bench.store.begin()
      await other.run(purgeDelivered(bench.names, { olderThanMs: 0, limit: 2 }))

      expect(await purge(0)).toBe('1')
      await other.commit()
      expect(await list()).toEqual([])
    })

  test('an outbox keeps what was delivered, with and without follow-ons, and what was given up not: it lists, gets and purges', async () => {
    const { outbox, of } = open({ delivered: 'table' })
    const got = collector<string>('mails')
    outbox.subscribe('orders', async ({ body }, context) => {
      if (body === 'no') return context.reject('no')
      if (body === 'mail') await context.publish('mails', 'sent', { key: 'm' })
    })
    outbox.subscribe('mails', ({ key }) => got.add(String(key)))
    const ids: string[] = []
    for (const body of ['plain', 'no', 'mail']) {
      ids.push((await outbox.publishNow('orders', body, { key: body })).id)
    }
    await outbox.start()
    await of('acked', 3)
    await of('dead')
    await outbox.stop()

    const { items, next } = await outbox.delivered.list()
    expect(items.map(({ key }) => key).toSorted()).toEqual(['m', 'mail', 'plain'])
    expect(next).toBeNull()
    expect(await outbox.delivered.get(ids[0]!)).toMatchObject({
      ...{ id: ids[0], body: 'plain', deliveries: 1, attempts: 0, deliveredAt: expect.any(Date) },
      failureHistory: { dropped: 0, cycles: [] },
    })
    expect(await outbox.delivered.get(ids[1]!)).toBeNull()
    const first = await outbox.delivered.list({ limit: 2, queue: 'orders' })
    const rest = await outbox.delivered.list({
      limit: 1,
      after: (await outbox.delivered.list({ limit: 2 })).next!,
    })
    expect([first.items.length, first.next, rest.items.length, rest.next]).toEqual([2, null, 1, null])
    expect(await outbox.delivered.purge({ olderThanMs: 60 * minute })).toEqual({ purged: 0 })
    await bench.store.advance(61 * minute)
    expect(await outbox.delivered.purge({ olderThanMs: 60 * minute })).toEqual({ purged: 3 })
    expect(await outbox.delivered.list()).toEqual({ items: [], next: null })
  })
}
