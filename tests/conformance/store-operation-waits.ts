import type { DeadLetters } from 'postbox'
import { describe, expect, test } from 'vitest'
import { discardDeadLetter } from '../../packages/postbox/src/sql/discard-dead-letter.ts'
import { lockOperation } from '../../packages/postbox/src/sql/lock-operation.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import type { StoreTransaction } from '../support/stores.ts'
import type { StoreBench } from './store-bench.ts'
import { alive, batches, by, keysOf, nowhere, places } from './store-operations.ts'

/** What an operation does beside the open transaction of somebody else. */
export function describeOperationWaits(bench: StoreBench): void {
  const letters = (): DeadLetters => bench.store.outbox({ logger: false }).deadLetters
  const replaying = (id: string) => {
    const rules = { by: 'ben', generation: null, delayMs: 0, historyLimit: 20, wake: 'always' } as const
    return replayDeadLetter(bench.names, { id, ...rules })
  }
  const replayIn = (tx: StoreTransaction, id: string): Promise<unknown> => tx.run(replaying(id))
  const deadKeys = async (): Promise<string> => keysOf((await letters().list()).items)

  describe.each(places)('of which somebody is replaying one that is %s', (place) => {
    test.each([
      ['replayAll', () => letters().replayAll({}, { by })],
      ['discard', () => letters().discard({}, { by })],
      ['purge', () => letters().purge({ olderThanMs: 0 })],
    ])('%s steps over it, and leaves it to him', async (_, act) => {
      const id = await bench.die({ key: 'a' }, { place })
      await bench.die({ key: 'b' }, { place })
      const tx = await bench.store.begin()
      await replayIn(tx, id)

      const done = await act()
      const during = await deadKeys()
      await tx.commit()

      expect(Object.values(done)).toContain(1)
      expect([during, await deadKeys()]).toEqual(['a', ''])
      expect(keysOf(await alive(bench))).toContain('a')
    })

    test.each(['commit', 'rollback'] as const)(
      'a discard of it by its id waits for his %s',
      async (ending) => {
        const id = await bench.die({ key: 'a' }, { place })
        const tx = await bench.store.begin()
        await replayIn(tx, id)

        const discard = letters().discard(id, { by })
        await bench.store.untilWaiting()
        await tx[ending]()

        expect((await discard).discarded).toBe(ending === 'commit' ? 0 : 1)
        expect([keysOf(await alive(bench)), await deadKeys()]).toEqual([ending === 'commit' ? 'a' : '', ''])
      },
    )

    test('a replay of it waits for somebody who discards it, and finds it gone', async () => {
      const id = await bench.die({}, { place })
      const tx = await bench.store.begin()
      await tx.run(discardDeadLetter(bench.names, { id, by, operation: nowhere, wake: 'always' }))

      const replay = bench.run(replaying(id))
      await bench.store.untilWaiting()
      await tx.commit()

      expect(await replay).toMatchObject([{ answer: 'already_replayed' }])
    })
  })

  test('who goes on with an operation waits for somebody who does, and goes on where he ended', async () => {
    for (const key of ['a', 'b', 'c']) await bench.die({ key })
    const { operation } = await letters().replayAll({}, { by, signal: AbortSignal.abort() })
    const tx = await bench.store.begin()
    const step = await batches(bench, operation)
    await tx.run(lockOperation(bench.names, { id: operation, kind: 'replay', lockMs: null }))

    const second = letters().resume(operation, { by: 'ben' })
    await bench.store.untilWaiting()
    await step(2, { on: tx })
    await tx.commit()

    expect(await second).toMatchObject({ replayed: 3, finished: true })
    expect(await alive(bench)).toHaveLength(3)
  })

  test('a batch waits for a timer that is being armed, and leaves its own dead when that is committed', async () => {
    await bench.die({ key: 'a', timerId: 't' })
    await bench.die({ key: 'b' })
    const tx = await bench.store.begin()
    await bench.publish({ timerId: 't' }, tx)

    const replay = letters().replayAll({}, { by })
    await bench.store.untilWaiting()
    await tx.commit()

    expect(await replay).toMatchObject({ replayed: 1, conflicts: 1, finished: true })
    expect(await deadKeys()).toBe('a')
  })
}
