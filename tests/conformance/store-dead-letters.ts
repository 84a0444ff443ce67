import { describe, expect, test } from 'vitest'
import { cursorText, readCursor } from '../../packages/postbox/src/core/dead-letter-cursor.ts'
import type { DeadLetterQuery } from '../../packages/postbox/src/core/dead-letter-options.ts'
import { historyFrom } from '../../packages/postbox/src/core/failure-history.ts'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { countDeadLetters } from '../../packages/postbox/src/sql/count-dead-letters.ts'
import type { DeadLetterRow } from '../../packages/postbox/src/sql/dead-letters.ts'
import { getDeadLetter } from '../../packages/postbox/src/sql/get-dead-letter.ts'
import { listDeadLetters } from '../../packages/postbox/src/sql/list-dead-letters.ts'
import { quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import { draftOf } from '../support/settle-bench.ts'
import { minute, minutesBetween, type StoreBench } from './store-bench.ts'

const any: DeadLetterQuery = {
  queue: null,
  reason: null,
  sinceMs: null,
  untilMs: null,
  key: null,
  search: null,
}
const quarantined = { place: 'quarantined' } as const

export function describeDeadLetters(bench: StoreBench): void {
  const list = (query: Partial<DeadLetterQuery> = {}, limit = 100) =>
    bench.run(listDeadLetters(bench.names, { query: { ...any, ...query }, limit, after: null }))
  const count = async (query: Partial<DeadLetterQuery> = {}, bound = 100): Promise<string> =>
    (await bench.run(countDeadLetters(bench.names, { ...any, ...query }, bound)))[0]!.count
  const keysOf = (rows: readonly DeadLetterRow[]): readonly (string | null)[] => rows.map(({ key }) => key)

  test('there are none at first', async () => {
    await bench.publish()

    expect([await list(), await count()]).toEqual([[], '0'])
  })

  test('they are listed newest first, wherever they lie', async () => {
    for (const [key, burial] of Object.entries({ a: {}, b: quarantined, c: {}, d: quarantined })) {
      await bench.die({ key }, burial)
      await bench.store.advance(minute)
    }

    expect(keysOf(await list())).toEqual(['d', 'c', 'b', 'a'])
  })

  describe.each(['moved', 'quarantined'] as const)('one that is %s', (place) => {
    test('is read as text, with everything that it had and what it died of', async () => {
      const draft = draftOf({
        key: 'k',
        timerId: 't',
        headers: { a: 'b' },
        generation: 7,
        body: Buffer.from([0, 255]),
      })
      await bench.publish()
      await bench.die(draft, { place, error: 'bäd' })
      await bench.store.advance(2 * minute)

      const [row, ...others] = (await list({ key: 'k' })).map((one) => ({
        ...one,
        headers: JSON.parse(one.headers!),
      }))
      const { now } = await bench.store.snapshot()
      expect(others).toEqual([])
      expect(row).toMatchObject({
        ...{ place, seq: place === 'moved' ? '1' : '2', id: draft.id, queue: 'orders', key: 'k', timer: 't' },
        ...{ body: 'AP8=', headers: { a: 'b' }, attempts: '1', deliveries: '1', generation: '7' },
        ...{ reason: 'rejected', error: 'bäd', history: null },
      })
      const { created, first, last, failed, micros } = row!
      expect([created, first, last, failed].map((time) => minutesBetween(now, time))).toEqual([
        -2, -2, -2, -2,
      ])
      expect(micros).toBe(String(Math.round(Number(failed) * 1_000)))
      expect(await bench.run(getDeadLetter(bench.names, draft.id))).toMatchObject([
        { place, id: draft.id, micros },
      ])
    })

    test('has nulls for what it does not have', async () => {
      await bench.die({}, { place, error: null, attempts: 0 })

      expect(await list()).toMatchObject([
        { key: null, timer: null, headers: null, generation: null, first: null, last: null, error: null },
      ])
    })

    test('is chosen by queue, reason, key, a part of its error and its time', async () => {
      await bench.die({ key: 'a' }, { place, error: 'Connection REFUSED (100%)' })
      await bench.store.advance(5 * minute)
      await bench.die({ key: 'b', queue: 'mails' }, { place, error: null, reason: 'max_deliveries' })
      await bench.store.advance(5 * minute)
      await bench.die({ key: 'c' }, { place, error: 'refused' })
      const { now } = await bench.store.snapshot()

      const chosen = async (query: Partial<DeadLetterQuery>): Promise<string> => {
        const keys = keysOf(await list(query)).join('')
        expect(await count(query)).toBe(String(keys.length))
        return keys
      }
      expect(await chosen({ queue: 'orders' })).toBe('ca')
      expect(await chosen({ queue: 'unknown' })).toBe('')
      expect(await chosen({ reason: 'max_deliveries' })).toBe('b')
      expect(await chosen({ key: 'a' })).toBe('a')
      expect(await chosen({ search: 'rEFUSEd' })).toBe('ca')
      // No character has a meaning of its own.
      expect([await chosen({ search: '(100%)' }), await chosen({ search: 'n%R' })]).toEqual(['a', ''])
      expect(await chosen({ sinceMs: now - 7 * minute })).toBe('cb')
      expect(await chosen({ untilMs: now - 7 * minute })).toBe('a')
      expect(await chosen({ sinceMs: now - 7 * minute, untilMs: now - 3 * minute })).toBe('b')
      expect(
        await chosen({ queue: 'orders', sinceMs: now - 7 * minute, search: 'refused', reason: 'rejected' }),
      ).toBe('c')
    })

    test('is among those since the very time at which it failed, and not among those until then', async () => {
      await bench.die({}, { place })
      const [row] = await list()
      const failed = Number(row!.failed)

      // A time is a number of milliseconds, so only one without fractions can be named exactly.
      const exact = Math.abs(failed * 1_000 - Number(row!.micros)) < 0.5
      expect([exact, await count({ sinceMs: failed }), await count({ untilMs: failed })]).toEqual([
        true,
        '1',
        '0',
      ])
    })
  })

  describe('pages', () => {
    /** Four that failed at one time, two in each place, one before and one after them. */
    async function six(): Promise<void> {
      await bench.die({ key: 'first' })
      await bench.store.advance(minute)
      for (const key of ['a', 'b', 'c', 'd']) await bench.publish({ key })
      const { fences } = await bench.claim()
      const burials = fences.map((fence) => ({ ...fence, reason: 'rejected', error: null, attempts: 1 }))
      // The time is that of the transaction.
      await bench.store.database.transaction(async (tx) => {
        await tx.run(quarantineDead(bench.names, burials.slice(2)))
        await tx.run(buryDead(bench.names, burials.slice(0, 2)))
      })
      await bench.store.advance(minute)
      await bench.die({ key: 'last' }, quarantined)
    }

    test.each([
      ['all', null],
      ['one queue', 'orders'],
    ])('of %s follow one another without a gap and without a repetition, of any size', async (_, queue) => {
      await six()
      const whole = keysOf(await list({ queue }))

      for (const limit of [1, 2, 3, 4, 5]) {
        const keys: (string | null)[] = []
        let after: string | null = null
        do {
          const page = { query: { ...any, queue }, limit, after: after === null ? null : readCursor(after) }
          const rows: readonly DeadLetterRow[] = await bench.run(listDeadLetters(bench.names, page))
          keys.push(...keysOf(rows.slice(0, limit)))
          const last = rows[limit - 1]
          after = rows.length <= limit ? null : cursorText({ ...last!, failedMicros: last!.micros })
        } while (after !== null && keys.length <= whole.length)
        expect([limit, keys]).toEqual([limit, whole])
      }
      expect(whole).toEqual(['last', 'b', 'a', 'd', 'c', 'first'])
    })

    test('have one row more than was asked for, when there is one', async () => {
      await six()

      const lengths = []
      for (const limit of [2, 5, 6, 7]) lengths.push((await list({}, limit)).length)
      expect(lengths).toEqual([3, 6, 6, 6])
    })

    test('of letters that failed in one microsecond: moved ones first, then the higher seq', async () => {
      await six()
      const [, b, a, d, c] = await list()
      expect(new Set([a, b, c, d].map((letter) => letter!.micros)).size).toBe(1)

      const behind = (place: 'moved' | 'quarantined', seq: string) => {
        const after = { failedMicros: a!.micros, place, seq }
        return bench.run(listDeadLetters(bench.names, { query: any, limit: 9, after })).then(keysOf)
      }
      expect(await behind('moved', b!.seq)).toEqual(['a', 'd', 'c', 'first'])
      expect(await behind('moved', '99')).toEqual(['b', 'a', 'd', 'c', 'first'])
      // Whoever has seen quarantined ones of that time has seen all moved ones.
      expect(await behind('quarantined', d!.seq)).toEqual(['c', 'first'])
      expect(await behind('quarantined', c!.seq)).toEqual(['first'])
    })
  })

  test('a count stops one above its bound', async () => {
    for (const burial of [{}, quarantined, {}, quarantined]) await bench.die({}, burial)

    expect([await count({}, 5), await count({}, 4), await count({}, 3), await count({}, 1)]).toEqual([
      '4',
      '4',
      '4',
      '2',
    ])
  })

  test.each(['moved', 'quarantined'] as const)(
    'one that was replayed before tells of it, %s',
    async (place) => {
      const id = await bench.die({ queue: 'mails' }, { error: 'first life' })
      const replay = { id, by: 'me', generation: null, delayMs: 0, historyLimit: 20, wake: 'always' } as const
      await bench.run(replayDeadLetter(bench.names, replay))
      const { fences } = await bench.claim({ queue: 'mails' })
      const burials = fences.map((fence) => ({ ...fence, reason: 'rejected', error: null, attempts: 1 }))
      await bench.run((place === 'moved' ? buryDead : quarantineDead)(bench.names, burials))

      const [row] = await list()
      expect(historyFrom(row!.history)).toMatchObject({
        dropped: 0,
        cycles: [{ error: 'first life', replayedBy: 'me' }],
      })
    },
  )

  test('one is read by its id, in any case of letters: the newest of it, wherever it lies', async () => {
    const { id } = draftOf()
    const get = async (given: string) => (await bench.run(getDeadLetter(bench.names, given)))[0]
    await bench.publish({ id, key: 'alive' })
    await bench.claim()
    expect(await get(id)).toBeUndefined()

    for (const [key, burial] of Object.entries({ a: {}, b: quarantined, c: {} })) {
      await bench.die({ id, key }, burial)
      await bench.store.advance(minute)
      expect(await get(id.toUpperCase())).toMatchObject({ key, id })
    }
  })
}
