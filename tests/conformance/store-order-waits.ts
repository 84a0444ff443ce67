import { describe, expect, test } from 'vitest'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { mostKeyLocks } from '../../packages/postbox/src/sql/lock-keys.ts'
import { draftOf, otherToken, stateOf } from '../support/settle-bench.ts'
import { minute, type StoreBench } from './store-bench.ts'
import { orderBench } from './store-order-bench.ts'

/** Who waits for an open transaction, within a key, and who does not. */
export function describeOrderWaits(bench: StoreBench): void {
  const order = orderBench(bench)

  test.each(['commit', 'rollback'] as const)(
    'a second publisher of a key has its place when the first has ended, by %s, and behind it',
    async (ending) => {
      const tx = await bench.store.begin()
      const [first] = await order.publish(['a'], {}, tx)
      const second = order.publish(['a'])
      await bench.store.untilWaiting()
      // Drawn while it waited: a place that came before would show here.
      const [other] = await order.publish(['b'])
      await tx[ending]()

      const [published] = await second
      expect(Number(published!.seq)).toBeGreaterThan(Number(other!.seq))
      expect(Number(other!.seq)).toBeGreaterThan(Number(first!.seq))
      const keys = ending === 'commit' ? ['a', 'b', 'a'] : ['b', 'a']
      expect((await bench.rows()).map(({ key }) => key)).toEqual(keys)
    },
  )

  test('a publisher of several keys waits for the one that somebody has', async () => {
    const tx = await bench.store.begin()
    await order.publish(['b'], {}, tx)
    const waiting = order.publish(['a', 'b', 'c'])
    await bench.store.untilWaiting()
    await tx.commit()

    await waiting
    expect((await bench.rows()).map(({ key }) => key)).toEqual(['b', 'a', 'b', 'c'])
  })

  test('publishers of other keys, of none, and of the key in another queue do not wait', async () => {
    const tx = await bench.store.begin()
    await order.publish(['a'], {}, tx)

    await order.publish(['b', null])
    await bench.publish({ queue: 'mails', key: 'a' })
    await tx.commit()

    expect((await bench.rows()).map(({ key }) => key)).toEqual(['a', 'b', null, 'a'])
  })

  test('a message for later has its key locked, too: it may be the first of it when it is due', async () => {
    const tx = await bench.store.begin()
    await order.publish(['a'], { schedule: { kind: 'after', delayMs: minute } }, tx)
    const second = order.publish(['a'])
    await bench.store.untilWaiting()
    await tx.commit()

    expect(await second).toHaveLength(1)
  })

  describe.runIf(bench.kind.isDatabase)('with more keys than it may lock', () => {
    const many = Array.from({ length: mostKeyLocks + 1 }, (_, n) => `k${n}`)

    test('a publisher waits for whoever has any key of the queue', async () => {
      const tx = await bench.store.begin()
      await order.publish(['other'], {}, tx)
      const waiting = order.publish(many)
      await bench.store.untilWaiting()
      await tx.commit()

      expect(await waiting).toHaveLength(many.length)
    })

    test('a publisher makes all others of the queue wait', async () => {
      const tx = await bench.store.begin()
      await order.publish(many, {}, tx)
      const waiting = order.publish(['other'])
      await bench.store.untilWaiting()
      await tx.commit()

      const [row] = await waiting
      expect(row!.seq).toBe(String(many.length + 1))
    })
  })

  test('a claim steps over a key whose first somebody is claiming, and waits for nobody', async () => {
    await order.publish(['a', 'a', 'b'])
    const tx = await bench.store.begin()
    await order.claim({ room: 1, on: tx })

    expect((await order.claim({ token: otherToken })).seqs).toEqual(['3'])
    await tx.rollback()
    expect((await order.claim({ token: otherToken })).seqs).toEqual(['1', '2'])
  })

  test.runIf(bench.kind.isDatabase)(
    'a claim does not come back empty because somebody is claiming the first: it takes another, and tells whether there was no room for more',
    async () => {
      await order.publish(['a', 'b', 'c'])
      const tx = await bench.store.begin()
      await order.claim({ room: 1, on: tx })

      const little = await order.claim({ room: 1, token: otherToken })
      expect([little.seqs, little.queue.leftover]).toEqual([['2'], 'true'])
      const enough = await order.claim({ room: 2, token: otherToken })
      expect([enough.seqs, enough.queue.leftover]).toEqual([['3'], 'false'])
      await tx.rollback()
    },
  )

  test('what is due leaves a key to who is publishing to it, and joins others', async () => {
    await order.publish(['a', 'b'], { schedule: { kind: 'after', delayMs: minute } })
    await bench.store.advance(minute)
    const tx = await bench.store.begin()
    await order.publish(['a'], {}, tx)

    expect(await order.join()).toBe(1)
    await tx.commit()
    expect(await order.join()).toBe(1)
    expect((await bench.rows()).map(({ key }) => key)).toEqual(['a', 'b', 'a'])
  })

  test('a follow-on does not wait for who is publishing to its key: it fails, and its message stays', async () => {
    await order.publish(['a'])
    const { fences } = await order.claim()
    const tx = await bench.store.begin()
    await order.publish(['b'], {}, tx)
    const settled = [{ ...fences[0]!, followOns: [draftOf({ key: 'b', isOrdered: true })] }]
    const settle = () => bench.run(deleteWithFollowOns(bench.names, { settled, wake: 'poll' }))

    expect(await stateOf(settle())).toBe('55P03')
    await tx.commit()
    expect(await settle()).toMatchObject([{ seq: '1' }])
    expect((await bench.rows()).map(({ key }) => key)).toEqual(['b', 'b'])
  })
}
