import { describe, expect, test } from 'vitest'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { extendLeases, holdsLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { doomTransaction, fenceTransaction } from '../../packages/postbox/src/sql/fence-transaction.ts'
import { otherToken } from '../support/settle-bench.ts'
import { minute, type StoreBench, seqsOf, token } from './store-bench.ts'

/** Messages whose handler works in a transaction of its own with them. */
export function describeFences(bench: StoreBench): void {
  test('give their holder what is still his, in the order of seq', async () => {
    const [first, second, third] = await bench.hold(3)
    const tx = await bench.store.begin()
    const rows = await tx.run(
      fenceTransaction(bench.names, [third!, { ...second!, token: otherToken }, first!]),
    )
    await tx.rollback()

    expect(rows.map(({ seq }) => seq)).toEqual(['1', '3'])
    expect(rows[0]).toMatchObject({
      xid: expect.stringMatching(/^\d+$/),
      pid: expect.stringMatching(/^\d+$/),
    })
    expect(new Set(rows.map(({ xid }) => xid)).size).toBe(1)
  })

  test('give nothing to one whose lease has ended and was taken', async () => {
    const fences = await bench.hold()
    await bench.store.advance(2 * minute)
    await bench.claim({ token: otherToken })
    const tx = await bench.store.begin()
    const rows = await tx.run(fenceTransaction(bench.names, fences))
    await tx.rollback()

    expect(rows).toEqual([])
  })

  test('change nothing by themselves', async () => {
    const fences = await bench.hold()
    const { messages: before } = await bench.store.snapshot()
    const tx = await bench.store.begin()
    await tx.run(fenceTransaction(bench.names, fences))
    await tx.commit()

    expect((await bench.store.snapshot()).messages).toEqual(before)
  })

  test('end with what is done in their transaction', async () => {
    const fences = await bench.hold()
    const tx = await bench.store.begin()
    await tx.run(fenceTransaction(bench.names, fences))
    expect(seqsOf(await tx.run(deleteAcked(bench.names, fences)))).toEqual(['1'])
    await bench.publish({ queue: 'mails' }, tx)
    await tx.commit()

    expect(await bench.rows()).toMatchObject([{ queue: 'mails' }])
  })

  test('are undone when their transaction is doomed, which is of no use after that', async () => {
    const fences = await bench.hold()
    const tx = await bench.store.begin()
    await tx.run(fenceTransaction(bench.names, fences))
    await tx.run(deleteAcked(bench.names, fences))
    await expect(tx.run(doomTransaction)).rejects.toMatchObject({ code: '57014' })
    await expect(bench.publish({}, tx)).rejects.toMatchObject({ code: '25P02' })
    await tx.rollback()

    expect(await bench.rows()).toMatchObject([{ seq: '1', leaseToken: token }])
  })
}

/** The same, as others see it meanwhile. */
export function describeFencedSessions(bench: StoreBench): void {
  test('a fenced message is stepped over by claims and renewals, though its lease has ended, and is still held', async () => {
    const fences = await bench.hold()
    await bench.store.advance(2 * minute)
    const tx = await bench.store.begin()
    await tx.run(fenceTransaction(bench.names, fences))
    const extensions = fences.map((fence) => ({ ...fence, leaseMs: minute }))

    expect((await bench.claim({ token: otherToken })).seqs).toEqual([])
    expect(await bench.run(extendLeases(bench.names, extensions))).toEqual([])
    expect(seqsOf(await bench.run(holdsLeases(bench.names, fences)))).toEqual(['1'])
    await tx.rollback()
    expect((await bench.claim({ token: otherToken })).seqs).toEqual(['1'])
  })

  test('a doomed transaction lets its messages go before it is rolled back', async () => {
    const fences = await bench.hold()
    const tx = await bench.store.begin()
    await tx.run(fenceTransaction(bench.names, fences))
    await tx.run(doomTransaction).catch(() => {})
    await bench.store.advance(2 * minute)

    expect((await bench.claim({ token: otherToken })).seqs).toEqual(['1'])
    await tx.rollback()
  })

  describe('a fence waits for who has its message', () => {
    test.each(['commit', 'rollback'] as const)(
      'and finds by his %s whether it is still there',
      async (end) => {
        const fences = await bench.hold()
        const [own, other] = [await bench.store.begin(), await bench.store.begin()]
        await other.run(deleteAcked(bench.names, fences))
        const fencing = own.run(fenceTransaction(bench.names, fences))
        await bench.store.untilWaiting()
        await other[end]()
        const rows = await fencing
        await own.rollback()

        expect(seqsOf(rows)).toEqual(end === 'commit' ? [] : ['1'])
      },
    )
  })
}
