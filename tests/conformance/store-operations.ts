import type { DeadLetters } from 'postbox'
import { describe, expect, test } from 'vitest'
import { historyFrom } from '../../packages/postbox/src/core/failure-history.ts'
import { mostRowsOfBatch } from '../../packages/postbox/src/core/operations.ts'
import { type LockedOperation, lockOperation } from '../../packages/postbox/src/sql/lock-operation.ts'
import { type ReplayBatch, replayDeadLetters } from '../../packages/postbox/src/sql/replay-dead-letters.ts'
import type { StoredMessage } from '../support/store-snapshot.ts'
import type { StoreTransaction } from '../support/stores.ts'
import { inMinutes, minute, type StoreBench } from './store-bench.ts'

export const by = 'ann'
export const places = ['moved', 'quarantined'] as const
export const nowhere = '00000000-0000-4000-8000-000000000000'

/** Messages that are not dead. */
export async function alive(bench: StoreBench): Promise<readonly StoredMessage[]> {
  return (await bench.rows()).filter(({ failedAt }) => failedAt === null)
}

export const keysOf = (rows: readonly { readonly key: string | null }[]): string =>
  rows.map(({ key }) => key).join('')

export function describeReplayAll(bench: StoreBench): void {
  const letters = (): DeadLetters => bench.store.outbox({ logger: false }).deadLetters

  /** One after the other, a minute apart. */
  async function died(deaths: Readonly<Record<string, object>>): Promise<void> {
    for (const [key, death] of Object.entries(deaths)) {
      const { queue, timerId, generation, ...burial } = death as Record<string, never>
      const draft = { queue, timerId, generation }
      const given = Object.fromEntries(Object.entries(draft).filter(([, value]) => value !== undefined))
      await bench.die({ key, ...given }, burial)
      await bench.store.advance(minute)
    }
  }
  const quarantined = { place: 'quarantined' }
  const deadKeys = async (): Promise<string> => keysOf([...(await letters().list()).items].reverse())

  test('of nothing replays nothing, and is finished', async () => {
    await bench.publish()

    expect(await letters().replayAll({}, { by })).toMatchObject({ replayed: 0, conflicts: 0, finished: true })
    expect(await alive(bench)).toHaveLength(1)
  })

  test('replays all that the filter means, wherever they lie, and leaves the others', async () => {
    await died({ a: {}, b: quarantined, c: { queue: 'mails' }, d: { queue: 'mails', ...quarantined }, e: {} })

    const { replayed } = await letters().replayAll({ queue: 'orders' }, { by })

    expect(replayed).toBe(3)
    expect(
      keysOf(await alive(bench))
        .split('')
        .sort()
        .join(''),
    ).toBe('abe')
    expect(await deadKeys()).toBe('cd')
  })

  test('replays the oldest first, up to its limit over both places', async () => {
    await died({ a: {}, b: quarantined, c: {}, d: quarantined, e: {} })

    const result = await letters().replayAll({}, { by, limit: 3 })

    expect(result).toMatchObject({ replayed: 3, conflicts: 0, finished: true })
    expect(await deadKeys()).toBe('de')
    // Those that were moved come back at the end of their queue, the oldest first.
    expect(keysOf(await alive(bench))).toBe('bac')
  })

  describe.each(places)('of what is %s', (place) => {
    test('puts each back as a single replay does, with the operation in its history', async () => {
      await bench.die({ key: 'k', timerId: 't', headers: { a: 'b' }, generation: 7 }, { place, attempts: 2 })
      await bench.store.advance(minute)

      const { operation } = await letters().replayAll({}, { by, generation: 8 })

      const [row] = await alive(bench)
      expect(row).toMatchObject({
        ...{
          queue: 'orders',
          key: 'k',
          timerId: 't',
          firedTimerId: null,
          headers: { a: 'b' },
          generation: 8,
        },
        ...{ attempts: 0, deliveries: 0, firstAttemptAt: null, lastAttemptAt: null, createdAt: -1 },
        ...{ leaseToken: null, failedAt: null, failureReason: null, lastError: null },
        dueAt: place === 'moved' ? null : 0,
      })
      expect(historyFrom(JSON.stringify(row!.failureHistory))).toMatchObject({
        dropped: 0,
        cycles: [
          {
            ...{ attempts: 2, deliveries: 1, reason: 'rejected', error: 'bad', replayedBy: by, operation },
            ...{ generationBefore: 7, generationAfter: 8 },
          },
        ],
      })
      expect(await bench.dead()).toEqual([])
      expect((await bench.claim()).messages).toMatchObject([{ timer: 't', deliveries: '1' }])
    })

    test('is due after a delay', async () => {
      await died({ a: { place }, b: { place } })

      await letters().replayAll({}, { by, delayMs: 5 * minute })

      expect((await alive(bench)).map(({ dueAt }) => dueAt)).toEqual([5, 5])
    })

    test('leaves a timer dead while one of its name waits, and one whose name an older one has taken', async () => {
      await died({
        ...{ a: { place, timerId: 'armed' }, b: { place, timerId: 'twice' }, c: { place, timerId: 'twice' } },
        ...{ d: { place, timerId: 'twice', queue: 'mails' }, e: { place } },
      })
      await bench.publish({ key: 'w', timerId: 'armed', ...inMinutes(5) })

      const result = await letters().replayAll({}, { by })

      expect(result).toMatchObject({ replayed: 3, conflicts: 2, finished: true })
      expect(await deadKeys()).toBe('ac')
      expect(keysOf((await alive(bench)).toSorted((a, b) => (a.key! < b.key! ? -1 : 1)))).toBe('bdew')
    })

    test('does not replay what died after the operation began', async () => {
      await died({ a: { place } })
      const { operation } = await letters().replayAll({}, { by, signal: AbortSignal.abort() })
      await died({ b: { place } })

      expect(await letters().resume(operation, { by })).toMatchObject({ replayed: 1, finished: true })
      expect(await deadKeys()).toBe('b')
    })
  })

  test('counts a name that both places have once, and keeps the younger one dead', async () => {
    await died({ a: { timerId: 't', ...quarantined }, b: { timerId: 't' } })

    expect(await letters().replayAll({}, { by })).toMatchObject({ replayed: 1, conflicts: 1 })
    expect([keysOf(await alive(bench)), await deadKeys()]).toEqual(['a', 'b'])
  })

  test('with a pace makes them due one after the other, and goes on where it ended', async () => {
    await died({ a: {}, b: quarantined, c: {}, d: quarantined })
    const options = { by, perSecond: 1 / 120, limit: 4 }
    const { operation } = await letters().replayAll({}, { ...options, signal: AbortSignal.abort() })
    const due = async (): Promise<unknown> =>
      (await alive(bench)).map(({ key, dueAt }) => [key, dueAt]).sort()
    const batchOf = await batches(bench, operation)

    await batchOf(2)
    const first = await due()
    await bench.store.advance(minute)
    await batchOf(2)

    expect(first).toEqual([
      ['a', 0],
      ['b', 2],
    ])
    expect(await due()).toEqual([
      ['a', -1],
      ['b', 1],
      ['c', 3],
      ['d', 5],
    ])
  })

  test('with a pace does not make up for the time that it stood still', async () => {
    await died({ a: {}, b: {} })
    const { operation } = await letters().replayAll(
      {},
      { by, perSecond: 1 / 60, signal: AbortSignal.abort() },
    )
    const batchOf = await batches(bench, operation)
    await batchOf(1)
    await bench.store.advance(60 * minute)
    await batchOf(1)

    expect((await alive(bench)).map(({ dueAt }) => dueAt)).toEqual([-60, 0])
  })

  test('takes no more than a batch at a time, and passes what it has looked at', async () => {
    await died({ a: { timerId: 't' }, b: {}, c: quarantined, d: {} })
    await bench.publish({ timerId: 't', ...inMinutes(5) })
    const { operation } = await letters().replayAll({}, { by, signal: AbortSignal.abort() })
    const batchOf = await batches(bench, operation)

    const steps = [await batchOf(1), await batchOf(2), await batchOf(2), await batchOf(2)]

    expect(steps).toEqual([
      { changed: '0', conflicts: '1', finished: 'false' },
      { changed: '2', conflicts: '1', finished: 'false' },
      { changed: '3', conflicts: '1', finished: 'true' },
      undefined,
    ])
    expect(await deadKeys()).toBe('a')
  })

  test('resumed, goes on by the filter, the limit and the generation that it began with', async () => {
    await died({ a: {}, b: quarantined, c: { queue: 'mails' }, d: {} })
    const filter = { queue: 'orders', reason: 'rejected', since: new Date(0), search: 'BA' } as const
    const options = { by, limit: 2, generation: 4, delayMs: minute }
    const { operation, ...begun } = await letters().replayAll(filter, {
      ...options,
      signal: AbortSignal.abort(),
    })

    const resumed = await letters().resume(operation.toUpperCase(), { by: 'ben' })

    expect(begun).toEqual({ dryRun: false, replayed: 0, conflicts: 0, finished: false })
    expect(resumed).toEqual({ dryRun: false, operation, replayed: 2, conflicts: 0, finished: true })
    expect(await deadKeys()).toBe('cd')
    const rows = await alive(bench)
    expect(rows.map(({ generation, dueAt }) => [generation, dueAt])).toEqual([
      [4, 1],
      [4, 1],
    ])
    const told = rows.map(({ failureHistory }) => historyFrom(JSON.stringify(failureHistory)).cycles[0])
    expect(told).toMatchObject([
      { replayedBy: 'ben', operation },
      { replayedBy: 'ben', operation },
    ])
  })

  test('resumed when it is finished, says so and changes nothing', async () => {
    await died({ a: {}, b: {} })
    const done = await letters().replayAll({}, { by, limit: 1 })

    expect(await letters().resume(done.operation, { by: 'ben' })).toEqual(done)
    expect(await deadKeys()).toBe('b')
  })

  test('that nobody began cannot be resumed, nor can a discard', async () => {
    await died({ a: {} })
    const { operation } = await letters().discard({}, { by })
    const unknown = { code: 'OUTBOX_UNKNOWN_OPERATION' }

    await expect(letters().resume(nowhere, { by })).rejects.toMatchObject(unknown)
    await expect(letters().resume(operation!, { by })).rejects.toMatchObject(unknown)
  })

  test('tells how far it is before the first batch and after each, and no listener breaks it', async () => {
    const count = mostRowsOfBatch + 1
    for (let n = 0; n < count; n++) await bench.publish()
    const { messages } = await bench.claim({ room: count })
    await bench.bury(messages)
    const told: unknown[] = []

    const { operation } = await letters().replayAll(
      {},
      {
        by,
        onProgress(progress) {
          told.push(progress)
          throw new Error('not listening')
        },
      },
    )

    const at = (changed: number, finished: boolean) => ({ operation, changed, conflicts: 0, finished })
    expect(told).toEqual([at(0, false), at(mostRowsOfBatch, false), at(count, true)])
  })

  test('is cancelled between two batches, and resumed', async () => {
    const count = mostRowsOfBatch + 1
    for (let n = 0; n < count; n++) await bench.publish()
    await bench.bury((await bench.claim({ room: count })).messages)
    const stop = new AbortController()
    const onProgress = ({ changed }: { readonly changed: number }) => void (changed > 0 && stop.abort())

    const { operation, ...cancelled } = await letters().replayAll({}, { by, signal: stop.signal, onProgress })

    expect(cancelled).toMatchObject({ replayed: mostRowsOfBatch, finished: false })
    expect(await letters().resume(operation, { by })).toMatchObject({ replayed: count, finished: true })
  })

  test('a dry run counts by queue and reason, shows the oldest and changes nothing', async () => {
    await died({
      a: quarantined,
      b: {},
      c: { queue: 'mails', reason: 'max_deliveries' },
      d: { queue: 'mails' },
    })
    const before = await bench.store.snapshot()

    const { sample, ...seen } = await letters().replayAll({}, { by, dryRun: true, limit: 1 })

    expect(seen).toEqual({
      dryRun: true,
      matched: { count: 4, atLeast: false },
      groups: [
        { queue: 'orders', reason: 'rejected', count: 2 },
        { queue: 'mails', reason: 'max_deliveries', count: 1 },
        { queue: 'mails', reason: 'rejected', count: 1 },
      ],
    })
    expect(keysOf(sample)).toBe('abcd')
    expect(await bench.store.snapshot()).toMatchObject({ messages: before.messages, dead: before.dead })
    expect((await letters().operations()).items).toEqual([])
  })

  test('a dry run shows the ten oldest of what is meant', async () => {
    for (let n = 0; n < 12; n++) await bench.die({ key: `${n}` }, { place: places[n % 2]! })
    await bench.die({ queue: 'mails' })

    const { sample, matched } = await letters().replayAll({ queue: 'orders' }, { by, dryRun: true })

    expect(sample.map(({ key }) => Number(key))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    expect(matched).toEqual({ count: 12, atLeast: false })
  })

  test('operations are listed newest first, page by page, with what they were asked and came to', async () => {
    await died({ a: {}, b: { timerId: 't' }, c: quarantined })
    await bench.publish({ timerId: 't', ...inMinutes(5) })
    const since = new Date(5)
    await letters().replayAll({ queue: 'orders', since }, { by, perSecond: 2.5, limit: 9, delayMs: 1 })
    await bench.store.advance(minute)
    const { id } = (await letters().list()).items[0]!
    await letters().discard(id, { by: 'ben' })
    await bench.store.advance(minute)
    await letters().replayAll({}, { by: 'cy', signal: AbortSignal.abort() })

    const all = await letters().operations()
    const page = await letters().operations({ limit: 2 })
    const rest = await letters().operations({ limit: 2, after: page.next! })

    expect(all.items).toMatchObject([
      { kind: 'replay', by: 'cy', filter: {}, settings: {}, finishedAt: null, changed: 0, conflicts: 0 },
      { kind: 'discard', by: 'ben', filter: { id }, settings: {}, changed: 1, conflicts: 0 },
      {
        ...{ kind: 'replay', by, changed: 2, conflicts: 1, filter: { queue: 'orders', since } },
        settings: { perSecond: 2.5, limit: 9, delayMs: 1 },
      },
    ])
    expect(all.next).toBeNull()
    expect([...page.items, ...rest.items]).toEqual(all.items)
    expect([page.items.length, rest.next]).toEqual([2, null])
    const [{ startedAt, updatedAt }, { finishedAt }] = all.items as never as [
      { startedAt: Date; updatedAt: Date },
      { finishedAt: Date },
    ]
    expect([startedAt, updatedAt, finishedAt].every((time) => time instanceof Date)).toBe(true)
    expect(finishedAt < startedAt).toBe(true)
  })
}

/** Batches of an operation, of sizes that a test chooses; `on`: in a transaction that has locked it already. */
export async function batches(
  bench: StoreBench,
  operation: string,
): Promise<(size: number, given?: { readonly on: StoreTransaction }) => Promise<unknown>> {
  return async (size, given) => {
    const tx = given?.on ?? (await bench.store.begin())
    const lock = { id: operation, kind: 'replay', lockMs: null } as const
    const [locked] = await tx.run(lockOperation(bench.names, lock))
    const [row] = await tx.run(replayDeadLetters(bench.names, batchOf(locked!, operation, size)))
    if (given === undefined) await tx.commit()
    if (row === undefined) return undefined
    const { changed, conflicts, finished } = row
    return { changed, conflicts, finished }
  }
}

function batchOf(locked: LockedOperation, operation: string, size: number): ReplayBatch {
  const settings = {
    perSecond: null,
    limit: null,
    generation: null,
    delayMs: 0,
    ...JSON.parse(locked.settings),
  }
  const query = { queue: null, reason: null, sinceMs: null, untilMs: null, key: null, search: null }
  const after = locked.place === null ? null : JSON.parse(locked.place)
  const stretch = { query, after, beforeMicros: locked.started }
  return { operation, stretch, size, by, settings, historyLimit: 20, wake: 'always' }
}
