// Where dead letters of an ordered queue land when they are replayed.
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { discardDeadLetter } from '../../packages/postbox/src/sql/discard-dead-letter.ts'
import { discardDeadLetters } from '../../packages/postbox/src/sql/discard-dead-letters.ts'
import { listDeadLetters } from '../../packages/postbox/src/sql/list-dead-letters.ts'
import { purgeDeadLetters } from '../../packages/postbox/src/sql/purge-dead-letters.ts'
import { replayDeadLetters } from '../../packages/postbox/src/sql/replay-dead-letters.ts'
import { startOperation } from '../../packages/postbox/src/sql/start-operation.ts'
import { inMinutes, minute, type StoreBench } from './store-bench.ts'
import { type Dying, type KeyBench, lane, useKeys } from './store-key-bench.ts'

export function describeLandings(bench: StoreBench): void {
  const keys = useKeys(bench)
  describeSingle(keys)
  describe('many', () => describeMany(keys))
  describe('what is deleted', () => describeDeleting(keys))
}

const anyOf = { queue: lane, reason: null, sinceMs: null, untilMs: null, key: null, search: null }
const lost: readonly Dying[] = ['moved', 'quarantined']

function describeSingle({ bench, ...keys }: KeyBench): void {
  test('one that holds its key is replayed in its place, with its generation and delay', async () => {
    const id = await keys.die('parked')
    const behind = await keys.publish()

    expect(await keys.replay(id, { delayMs: 5 * minute, generation: 3 })).toMatchObject([
      { answer: 'replayed', lands: 'in_place' },
    ])

    expect(await keys.row(id)).toMatchObject({ seq: '1', key: 'a', dueAt: 5, generation: 3, parkedAt: null })
    expect(await keys.claim()).toEqual([])
    await bench.store.advance(6 * minute)
    expect((await keys.handleAll()).map((row) => row.id)).toEqual([id, behind])
  })

  test('one that holds its key goes on without the name of its timer where another one waits', async () => {
    const id = await keys.die('parked', { timerId: 't', conflict: 'keep' })
    await keys.publish({ key: 'b', timerId: 't', conflict: 'keep', ...inMinutes(5) })

    expect(await keys.replay(id)).toMatchObject([{ answer: 'replayed', lands: 'in_place' }])
    expect(await keys.row(id)).toMatchObject({ timerId: null, firedTimerId: 't', failedAt: null })
  })

  describe.each(lost)('one that was %s', (how) => {
    test('goes behind all of its key, with a seq of its own, whatever its place was', async () => {
      const id = await keys.die(how)
      const before = await keys.publish()

      expect(await keys.replay(id)).toMatchObject([{ answer: 'replayed', lands: 'behind_key' }])
      const after = await keys.publish()

      expect(await keys.inTable()).toEqual([before, id, after])
      expect(await keys.row(id)).toMatchObject({ key: 'a', laterKey: null, dueAt: null, failedAt: null })
      expect(await bench.dead()).toEqual([])
      expect((await keys.claim()).map((row) => row.id)).toEqual([before, id, after])
    })

    test('waits without a key when it is to be later, and joins it then', async () => {
      const id = await keys.die(how)
      expect(await keys.replay(id, { delayMs: 5 * minute })).toMatchObject([{ lands: 'behind_key' }])
      const [first] = [await keys.publish()]

      expect(await keys.row(id)).toMatchObject({ key: null, laterKey: 'a', dueAt: 5 })
      await bench.store.advance(6 * minute)
      expect(await keys.join()).toBe(1)
      expect(await keys.inTable()).toEqual([first, id])
    })

    test('that is a timer joins its key as timers do, and stays dead while one of its name waits', async () => {
      const id = await keys.die(how, { timerId: 't', conflict: 'keep' })
      await keys.publish({ key: 'b', timerId: 't', conflict: 'keep', ...inMinutes(5) })

      expect(await keys.replay(id)).toMatchObject([{ answer: 'timer_conflict' }])
      expect(
        (await bench.run(listDeadLetters(bench.names, { query: anyOf, after: null, limit: 9 }))).length,
      ).toBe(1)
      await bench.cancel('t', { queue: lane })
      expect(await keys.replay(id)).toMatchObject([{ answer: 'replayed', lands: 'behind_key' }])
      expect(await keys.row(id)).toMatchObject({ laterKey: 'a', timerId: 't', dueAt: 0 })
      expect(await keys.join()).toBe(1)
      expect(await keys.row(id)).toMatchObject({ key: 'a', timerId: 't', dueAt: null })
    })

    test('and has no key lands anywhere, as in any queue', async () => {
      const id = await keys.die(how, { key: null, isOrdered: false })

      expect(await keys.replay(id)).toMatchObject([{ answer: 'replayed', lands: 'anywhere' }])
    })
  })

  test('a dead letter of a queue without order lands anywhere, whatever its key', async () => {
    const id = await bench.die({ key: 'a' }, { place: 'quarantined' })

    expect(await keys.replay(id)).toMatchObject([{ answer: 'replayed', lands: 'anywhere' }])
    expect(await keys.row(id)).toMatchObject({ seq: '1', key: 'a', dueAt: 0 })
  })
}

function describeMany({ bench, ...keys }: KeyBench): void {
  const replayAll = async (perSecond: number | null = null): Promise<unknown> => {
    const operation = randomUUID()
    await bench.run(
      startOperation(bench.names, { id: operation, kind: 'replay', by: 'ann', filter: {}, settings: {} }),
    )
    const settings = { generation: null, delayMs: 0, perSecond, limit: null }
    const stretch = { query: anyOf, after: null, beforeMicros: null }
    const rules = { by: 'ann', settings, historyLimit: 20, wake: 'always' } as const
    const [row] = await bench.run(replayDeadLetters(bench.names, { operation, stretch, size: 10, ...rules }))
    return row
  }

  test('those that hold their key are replayed in their places, and the others behind their keys, the oldest first', async () => {
    const [first, second] = [await keys.die('moved'), await keys.die('quarantined')]
    const parked = await keys.die('parked')
    const other = await keys.die('moved', { key: 'b' })
    const behind = await keys.publish()

    expect(await replayAll()).toMatchObject({ changed: '4', conflicts: '0', finished: 'true' })

    expect(await keys.inTable('a')).toEqual([parked, behind, first, second])
    expect(await keys.inTable('b')).toEqual([other])
    expect(await bench.dead()).toEqual([])
    expect((await bench.rows()).every(({ failedAt }) => failedAt === null)).toBe(true)
    const handled = (await keys.handleAll()).filter(({ key }) => key === 'a')
    expect(handled.map((row) => row.id)).toEqual([parked, behind, first, second])
  })

  test('with a pace they wait without a key, and join it when they are due; those that hold it wait in their places', async () => {
    const [first, second] = [await keys.die('moved'), await keys.die('quarantined')]
    const parked = await keys.die('parked')

    await replayAll(1 / 60)

    const places = await Promise.all([first, second, parked].map(keys.row))
    expect(places.map(({ key, laterKey, dueAt }) => [key, laterKey, dueAt])).toEqual([
      [null, 'a', 0],
      [null, 'a', 1],
      ['a', null, 2],
    ])
  })

  test('of timers of one name the oldest is replayed; one that holds its key goes on without the name', async () => {
    const timer = { timerId: 't', conflict: 'keep' } as const
    const first = await keys.die('quarantined', timer)
    await keys.die('moved', timer)
    const parked = await keys.die('parked', timer)

    expect(await replayAll()).toMatchObject({ changed: '2', conflicts: '1' })

    expect(await keys.row(first)).toMatchObject({ laterKey: 'a', timerId: 't', failedAt: null })
    expect(await keys.row(parked)).toMatchObject({
      key: 'a',
      timerId: null,
      firedTimerId: 't',
      failedAt: null,
    })
    expect(await bench.dead()).toHaveLength(1)
  })
}

function describeDeleting({ bench, ...keys }: KeyBench): void {
  const discard = (id: string) =>
    bench.run(discardDeadLetter(bench.names, { id, by: 'ann', operation: randomUUID(), wake: 'always' }))

  test('by its id goes with the key that it held: the next message says who died', async () => {
    const id = await keys.die('parked')
    const next = await keys.publish()

    expect(await discard(id)).toMatchObject([{ discarded: '1' }])

    expect(await keys.inTable()).toEqual([next])
    expect(await keys.claim()).toMatchObject([{ id: next, afterdead: id }])
  })

  test('by its id and held no key tells nobody', async () => {
    const id = await keys.die('parked')
    const next = await keys.publish()
    await keys.skip('a')
    const other = await keys.die('quarantined', { key: 'b' })
    const behind = await keys.publish({ key: 'b' })

    expect([await discard(id), await discard(other)]).toMatchObject([
      [{ discarded: '1' }],
      [{ discarded: '1' }],
    ])
    expect(await keys.row(next)).toMatchObject({ afterDead: id })
    expect(await keys.row(behind)).toMatchObject({ afterDead: null, dueAt: null })
  })

  test('by a filter, or because it is old, is none that holds its key', async () => {
    const parked = await keys.die('parked')
    await keys.die('quarantined', { key: 'b' })
    await keys.die('moved', { key: 'c' })
    const operation = randomUUID()
    await bench.run(
      startOperation(bench.names, { id: operation, kind: 'discard', by: 'ann', filter: {}, settings: {} }),
    )
    const stretch = { query: anyOf, after: null, beforeMicros: null, sparesParked: true }

    const [row] = await bench.run(discardDeadLetters(bench.names, { operation, stretch, size: 10 }))

    expect(row).toMatchObject({ changed: '2', finished: 'true' })
    await bench.store.advance(minute)
    const purge = { place: 'quarantined', olderThanMs: 1, limit: 10 } as const
    expect(await bench.run(purgeDeadLetters(bench.names, purge))).toMatchObject([{ purged: '0' }])
    expect((await keys.row(parked)).parkedAt).toBe(-1)
  })
}
