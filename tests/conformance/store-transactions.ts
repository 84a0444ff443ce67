import { describe, expect, test } from 'vitest'
import { horizonOf, parseSnapshot } from '../../packages/postbox/src/core/horizon.ts'
import { countMessages } from '../../packages/postbox/src/sql/count-messages.ts'
import { extendLeases, holdsLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { peekPending } from '../../packages/postbox/src/sql/peek-pending.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { otherToken, stateOf } from '../support/settle-bench.ts'
import { eventually } from '../support/signals.ts'
import type { StoreTransaction } from '../support/stores.ts'
import { type Claimed, inMinutes, minute, type StoreBench, token } from './store-bench.ts'

const daily = { timerId: 'daily' }

/** What one transaction sees and does, on any store. */
export function describeTransactions(bench: StoreBench): void {
  const peeked = (tx: StoreTransaction) =>
    tx
      .run(peekPending(bench.names, { queue: null, limit: 9, mark: null }))
      .then((rows) => rows.map(({ seq }) => seq))

  test('what was written is there when it commits, with the time at which it began', async () => {
    const tx = await bench.store.begin()
    await bench.publish({ key: 'a' }, tx)
    await bench.publish({ key: 'b', ...inMinutes(5) }, tx)
    await tx.commit()

    const { messages } = await bench.store.snapshot()
    expect(messages).toMatchObject([
      { seq: '1', key: 'a' },
      { seq: '2', key: 'b' },
    ])
    expect(messages[0]!.createdAt).toBe(messages[1]!.createdAt)
  })

  test('a delay counts from its statement, not from the beginning of the transaction', async () => {
    const tx = await bench.store.begin()
    // As many as it takes for a clock of milliseconds, which PGlite has, to go on.
    for (let n = 0; n < 20; n++) await bench.publish(inMinutes(5), tx)
    await tx.commit()

    const { messages } = await bench.store.snapshot()
    expect(messages.at(-1)!.createdAt).toBe(messages[0]!.createdAt)
    expect(messages.at(-1)!.dueAt).toBeGreaterThan(messages[0]!.dueAt!)
  })

  test('nothing is there when it rolls back, and its seqs do not come back', async () => {
    await bench.publish({ timerId: 'cancelled' })
    await bench.publish({ timerId: 'replaced', key: 'old', ...inMinutes(5) })
    const before = await bench.store.snapshot()
    const tx = await bench.store.begin()
    await bench.publish(daily, tx)
    await bench.cancel('cancelled', { on: tx })
    await bench.publish({ timerId: 'replaced', key: 'new', conflict: 'replace' }, tx)
    await bench.claim({ on: tx })
    await tx.rollback()

    expect((await bench.store.snapshot()).messages).toEqual(before.messages)
    expect(await bench.publish(daily)).toMatchObject({ seq: '5' })
    expect(await bench.publish({ timerId: 'cancelled' })).toBeNull()
  })

  test('it sees what it has written: rows, names, leases', async () => {
    await bench.publish({ timerId: 'committed', ...inMinutes(5) })
    await bench.publish(inMinutes(60))
    const tx = await bench.store.begin()
    await bench.publish({ ...daily }, tx)
    await bench.cancel('committed', { on: tx })
    await bench.publish({ timerId: 'committed' }, tx)

    expect(await peeked(tx)).toEqual(['2', '3', '4'])
    expect(await bench.publish(daily, tx)).toBeNull()
    const { seqs, queue } = await bench.claim({ on: tx })
    expect([seqs, queue.lowest, queue.top]).toEqual([['3', '4'], '3', '5'])
    expect(await bench.publish(daily, tx)).not.toBeNull()
    expect((await bench.claim({ on: tx, token: otherToken })).seqs).toEqual(['6'])
    expect(await tx.run(countMessages(bench.names, ['orders'], 9))).toMatchObject([
      { leased: '3', scheduled: '1' },
    ])
    await tx.commit()
    expect((await bench.rows()).map(({ seq }) => seq)).toEqual(['2', '3', '4', '6'])
  })

  test('it claims what it has written by the rules of any claim: queue, cursor, room, what is due first', async () => {
    await bench.publish(inMinutes(2))
    await bench.publish(inMinutes(1))
    await bench.store.advance(5 * minute)
    const tx = await bench.store.begin()
    await tx.run(releaseLeases(bench.names, (await bench.claim({ on: tx })).fences, true))
    for (const queue of ['orders', 'orders', 'mails']) await bench.publish({ queue }, tx)
    const claimed = []
    for (const given of [{ room: 1 }, { room: 2 }, { after: '4' }, {}]) {
      const { seqs, queue } = await bench.claim({ on: tx, ...given })
      claimed.push([seqs, queue.lowest])
    }
    await tx.commit()

    expect(claimed).toEqual([
      [['2'], '3'],
      [['1', '3'], '3'],
      [[], null],
      [['4'], '3'],
    ])
  })

  test('a claim of one that has written is not among those that run, and has not ended', async () => {
    const tx = await bench.store.begin()
    await bench.publish({}, tx)
    const { queue } = await bench.claim({ on: tx })
    await tx.commit()

    const { xmin, running } = parseSnapshot(queue.snapshot)
    expect([running.includes(BigInt(queue.own)), xmin <= BigInt(queue.own)]).toEqual([false, true])
  })

  test('a timer that it armed and cancelled leaves nothing behind', async () => {
    const tx = await bench.store.begin()
    await bench.publish(daily, tx)
    await bench.cancel('daily', { on: tx })
    await tx.commit()

    expect(await bench.rows()).toEqual([])
    expect(await bench.publish(daily)).not.toBeNull()
  })

  test('one of our own commits what the work did, and gives its result', async () => {
    const result = await bench.store.database.transaction(async (tx) => {
      await bench.publish({ key: 'a' }, tx)
      return 'result'
    })

    expect(result).toBe('result')
    expect(await bench.rows()).toMatchObject([{ key: 'a' }])
  })

  test('one of our own rolls back what the work did before it failed, and nobody waits for it any more', async () => {
    const failing = bench.store.database.transaction(async (tx) => {
      await bench.publish(daily, tx)
      throw new Error('mine')
    })

    await expect(failing).rejects.toThrow('mine')
    expect(await bench.rows()).toEqual([])
    expect(await bench.publish(daily)).toMatchObject({ seq: '2' })
  })

  test('after a statement that failed nothing more is done, and its commit rolls back', async () => {
    const [first, second] = [await bench.hold([daily]), await bench.hold([daily])]
    const tx = await bench.store.begin()
    await bench.publish({}, tx)

    expect(await stateOf(tx.run(releaseLeases(bench.names, [...first, ...second], true)))).toBe('23505')
    expect(await stateOf(bench.publish({}, tx))).toBe('25P02')
    // PGlite says that it has rolled back, others do not.
    await tx.commit().catch(() => {})
    expect(await bench.rows()).toMatchObject([{ leaseToken: token }, { leaseToken: token }])
  })

  test('each claim is younger than the one before it', async () => {
    const owns = []
    for (let n = 0; n < 3; n++) owns.push(BigInt((await bench.claim()).queue.own))

    expect(owns[0]! < owns[1]! && owns[1]! < owns[2]!).toBe(true)
  })
}

/** What others see of an open transaction, where there can be others. */
export function describeSessions(bench: StoreBench): void {
  const looked = () => bench.run(peekPending(bench.names, { queue: null, limit: 9, mark: null }))

  test('others neither see nor claim nor count what is not committed, and do so afterwards', async () => {
    const tx = await bench.store.begin()
    await bench.publish({}, tx)
    await bench.publish(inMinutes(5), tx)
    const count = () => bench.run(countMessages(bench.names, ['orders'], 9))

    const { seqs, queue } = await bench.claim()
    expect([seqs, queue.lowest, queue.nextdue, queue.top]).toEqual([[], null, null, '2'])
    expect([await looked(), await bench.rows()]).toEqual([[], []])
    expect(await count()).toMatchObject([{ ready: '0', scheduled: '0' }])
    await tx.commit()
    expect(await count()).toMatchObject([{ ready: '1', scheduled: '1' }])
    expect((await bench.claim()).seqs).toEqual(['1'])
  })

  test('a row that commits below those that were claimed already is found', async () => {
    const tx = await bench.store.begin()
    await bench.publish({ key: 'late' }, tx)
    await bench.publish({ key: 'early' })
    const first = await bench.claim()
    await tx.commit()

    expect(first.messages).toMatchObject([{ seq: '2', key: 'early' }])
    expect((await bench.claim({ token: otherToken })).messages).toMatchObject([{ seq: '1', key: 'late' }])
  })

  describe.each<readonly [string, (tx: StoreTransaction) => Promise<unknown>, object]>([
    ['cancelled', (tx) => bench.cancel('daily', { on: tx }), { after: [] }],
    [
      'replaced',
      (tx) => bench.publish({ ...daily, key: 'new', conflict: 'replace' }, tx),
      { after: [{ key: 'new', timerId: 'daily', deliveries: 0 }] },
    ],
    ['claimed', (tx) => bench.claim({ on: tx }), { after: [{ key: 'old', timerId: null, deliveries: 1 }] }],
  ])('a timer that an open transaction has %s', (_, write, { after }: { after?: object[] }) => {
    const old = { key: 'old', timerId: 'daily', deliveries: 0, leaseToken: null }

    test('is stepped over by claims, and seen by others as it was', async () => {
      await bench.publish({ ...daily, key: 'old' })
      const tx = await bench.store.begin()
      await write(tx)
      await bench.publish({ key: 'neighbour' })

      expect((await bench.claim({ token: otherToken })).messages).toMatchObject([{ key: 'neighbour' }])
      expect(await looked()).toMatchObject([{ key: 'old', timer: 'daily', leased: 'false' }, {}])
      expect((await bench.rows())[0]).toMatchObject(old)
      await tx.rollback()
      expect((await bench.rows())[0]).toMatchObject(old)
      expect((await bench.claim({ token: otherToken })).messages).toMatchObject([
        { key: 'old', deliveries: '1' },
      ])
    })

    test('is what that made of it after the commit', async () => {
      await bench.publish({ ...daily, key: 'old' })
      const tx = await bench.store.begin()
      await write(tx)
      await tx.commit()

      expect(await bench.rows()).toMatchObject(after!)
    })
  })

  test('a lease whose row is locked is stepped over by its renewal, and still held', async () => {
    const fences = await bench.hold(2)
    const extensions = fences.map((fence) => ({ ...fence, leaseMs: 5 * minute }))
    const tx = await bench.store.begin()
    await tx.run(extendLeases(bench.names, [extensions[0]!]))

    expect(await bench.run(extendLeases(bench.names, extensions))).toEqual([{ seq: '2' }])
    expect(await bench.run(holdsLeases(bench.names, [fences[0]!]))).toEqual([{ seq: '1' }])
    await tx.rollback()
    expect((await bench.rows()).map(({ leasedUntil }) => leasedUntil)).toEqual([1, 5])
  })

  test('a transaction that has written holds back the horizon of claims until it ends', async () => {
    const own = ({ queue }: Claimed): bigint => BigInt(queue.own)
    const strict = ({ queue }: Claimed): bigint =>
      horizonOf(parseSnapshot(queue.snapshot), new Map(), 0).strict
    const idle = await bench.store.begin()
    const tx = await bench.store.begin()
    await bench.publish({}, tx)
    const during = await bench.claim()

    expect(strict(await bench.claim()) < own(during)).toBe(true)
    await tx.commit()
    // Transactions of others on the same server hold it back as well.
    await eventually(async () => strict(await bench.claim()) >= own(during), { what: 'the horizon to pass' })
    await idle.rollback()
  })
}
