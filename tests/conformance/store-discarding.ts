import type { DeadLetters } from 'postbox'
import { describe, expect, test } from 'vitest'
import { mostRowsOfBatch } from '../../packages/postbox/src/core/operations.ts'
import { forgetOperation } from '../../packages/postbox/src/sql/forget-operation.ts'
import { minute, type StoreBench } from './store-bench.ts'
import { alive, by, keysOf, nowhere, places } from './store-operations.ts'

export function describeDiscarding(bench: StoreBench): void {
  const letters = (): DeadLetters => bench.store.outbox({ logger: false }).deadLetters

  describe.each(places)('what is %s', (place) => {
    test('by its id deletes the newest of that id, and leaves an operation', async () => {
      const id = await bench.die({ key: 'a' }, { place })
      await bench.store.advance(minute)
      await bench.die({ id, key: 'b' }, { place })
      await bench.publish({ key: 'c' })

      const { operation, ...rest } = await letters().discard(id.toUpperCase(), { by })

      expect(rest).toEqual({ discarded: 1, finished: true })
      expect((await letters().list()).items.map(({ key }) => key)).toEqual(['a'])
      expect(keysOf(await alive(bench))).toBe('c')
      expect((await letters().operations()).items).toMatchObject([
        { id: operation, kind: 'discard', by, filter: { id }, changed: 1, finishedAt: expect.any(Date) },
      ])
    })

    test('by a filter deletes all that it means, and nothing that lives', async () => {
      for (const key of ['a', 'b', 'a']) await bench.die({ key }, { place })
      await bench.publish({ key: 'a' })

      const { operation, ...rest } = await letters().discard({ key: 'a' }, { by })

      expect(rest).toEqual({ discarded: 2, finished: true })
      expect((await letters().list()).items.map(({ key }) => key)).toEqual(['b'])
      expect(keysOf(await alive(bench))).toBe('a')
      expect((await letters().operations()).items).toMatchObject([
        {
          id: operation,
          kind: 'discard',
          by,
          filter: { key: 'a' },
          changed: 2,
          finishedAt: expect.any(Date),
        },
      ])
    })

    test('is purged when it is older than that, and only then', async () => {
      await bench.die({ key: 'a' }, { place })
      await bench.store.advance(10 * minute)
      await bench.die({ key: 'b' }, { place })
      await bench.publish()

      expect(await letters().purge({ olderThanMs: 20 * minute })).toEqual({ purged: 0 })
      expect(await letters().purge({ olderThanMs: 5 * minute })).toEqual({ purged: 1 })
      expect((await letters().list()).items.map(({ key }) => key)).toEqual(['b'])
      expect(await letters().purge({ olderThanMs: 0 })).toEqual({ purged: 1 })
      expect(await alive(bench)).toHaveLength(1)
      expect((await letters().operations()).items).toEqual([])
    })
  })

  test('what is not there discards nothing and leaves no operation', async () => {
    await bench.die()
    const nothing = { discarded: 0, operation: null, finished: true }

    expect(await letters().discard(nowhere, { by })).toEqual(nothing)
    expect(await letters().discard({ queue: 'none' }, { by })).toEqual(nothing)
    expect((await letters().operations()).items).toEqual([])
    expect((await letters().list()).items).toHaveLength(1)
  })

  test('tells how far it is, and is cancelled between two batches', async () => {
    const count = mostRowsOfBatch + 1
    for (let n = 0; n < count; n++) await bench.publish()
    await bench.bury((await bench.claim({ room: count })).messages)
    const stop = new AbortController()
    const onProgress = ({ changed }: { readonly changed: number }) => void (changed > 0 && stop.abort())

    const { operation, ...cancelled } = await letters().discard({}, { by, signal: stop.signal, onProgress })

    expect(cancelled).toEqual({ discarded: mostRowsOfBatch, finished: false })
    expect((await letters().operations()).items).toMatchObject([{ id: operation, finishedAt: null }])
    expect(await letters().discard({}, { by })).toMatchObject({ discarded: 1, finished: true })
  })

  test('an operation that has changed something is not forgotten, one that has not is', async () => {
    await bench.die()
    const { operation } = await letters().replayAll({}, { by })
    const { operation: idle } = await letters().replayAll({}, { by })
    const forgotten = (id: string) => bench.run(forgetOperation(bench.names, id))

    expect([await forgotten(operation), await forgotten(idle)]).toEqual([[], [{ id: idle }]])
    expect((await letters().operations()).items).toMatchObject([{ id: operation, changed: 1 }])
  })
}
