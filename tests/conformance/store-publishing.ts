import { describe, expect, test } from 'vitest'
import type { Draft } from '../../packages/postbox/src/core/message.ts'
import { cancelTimer } from '../../packages/postbox/src/sql/cancel-timer.ts'
import { insertMessage } from '../../packages/postbox/src/sql/insert-message.ts'
import { insertMessages } from '../../packages/postbox/src/sql/insert-messages.ts'
import { eachRow, type InsertedRow } from '../../packages/postbox/src/sql/insert-plain.ts'
import { markTransaction, readMark } from '../../packages/postbox/src/sql/mark-transaction.ts'
import { peekPending } from '../../packages/postbox/src/sql/peek-pending.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { draftOf } from '../support/settle-bench.ts'
import { decoded, inMinutes, minute, minutesBetween, type StoreBench, seqsOf } from './store-bench.ts'

const always = { wake: 'always', mark: null } as const
const unlived = {
  ...{ attempts: 0, deliveries: 0, createdAt: 0, firstAttemptAt: null, lastAttemptAt: null },
  ...{
    leaseToken: null,
    leasedUntil: null,
    firedTimerId: null,
    laterKey: null,
    parkedAt: null,
    afterDead: null,
  },
  ...{ failedAt: null, failureReason: null, lastError: null, failureHistory: null },
}

export function describePublishing(bench: StoreBench): void {
  type Insert = (drafts: readonly Draft[]) => Statement<InsertedRow>
  const inserts: readonly (readonly [string, Insert])[] = [
    ['on its own', ([draft]) => insertMessage(bench.names, draft!, always)],
    [
      'in a batch',
      (drafts) =>
        insertMessages(bench.names, { queue: 'orders', drafts, conflict: drafts[0]!.conflict }, always),
    ],
  ]

  describe.each(inserts)('a message that is published %s', (_, insert) => {
    test('is stored with all that it was given, and as one that nothing has happened to', async () => {
      const own = {
        ...{ key: `k'"\\ 😀`, timerId: `t'"\\`, body: new Uint8Array([0, 92, 255]), generation: 7 },
        ...{ headers: { [`a"'\\`]: 'ü' }, ...inMinutes(5) },
      }
      const draft = draftOf(own)

      const written = eachRow(await bench.run(insert([draft])), [draft])

      expect(written).toEqual([{ id: draft.id, seq: '1' }])
      expect(await bench.rows()).toEqual([
        {
          ...{ seq: '1', id: draft.id, queue: 'orders', key: own.key, timerId: own.timerId, body: 'AFz/' },
          ...{ headers: own.headers, dueAt: 5, generation: 7, ...unlived },
        },
      ])
    })

    test('has no key, no headers, no generation and no time to wait for, unless it was given them', async () => {
      await bench.run(insert([draftOf({ body: new Uint8Array(0) })]))

      expect(await bench.rows()).toMatchObject([
        { key: null, timerId: null, body: '', headers: null, dueAt: null, generation: null },
      ])
    })

    test('has an id in small letters, however it was written', async () => {
      await bench.run(insert([draftOf({ id: '0190163D-8694-739B-9AEA-966C26F8ADFF' })]))

      expect(await bench.rows()).toMatchObject([{ id: '0190163d-8694-739b-9aea-966c26f8adff' }])
    })

    test('is due at its time, and fresh when that has passed', async () => {
      const { now } = await bench.store.snapshot()
      const at = (epochMs: number): Draft => draftOf({ schedule: { kind: 'at', epochMs } })

      for (const draft of [at(now + 3 * minute), at(now - minute), at(-1)]) await bench.run(insert([draft]))

      expect((await bench.rows()).map(({ dueAt }) => dueAt)).toEqual([3, null, null])
      const [first] = (await bench.store.snapshot()).messages
      expect(first!.dueAt).toBeCloseTo(now + 3 * minute, 2)
    })

    // F-19
    test('does not change when what was passed in is changed afterwards', async () => {
      const [body, headers] = [Buffer.from('before'), { tenant: 'before' }]
      await bench.run(insert([draftOf({ body, headers })]))
      body.write('after!')
      headers.tenant = 'after'

      const [row] = await bench.rows()
      expect([decoded(row!.body), row!.headers]).toEqual(['before', { tenant: 'before' }])
    })

    test('gives its headers in the order of jsonb: short names first, then by their bytes', async () => {
      const headers = Object.fromEntries(['bb', 'ä', 'c', 'a', 'aaa', 'B'].map((name) => [name, '']))
      await bench.run(insert([draftOf({ headers })]))

      const { messages } = await bench.claim()

      expect(Object.keys(JSON.parse(messages[0]!.headers!))).toEqual(['B', 'a', 'c', 'bb', 'ä', 'aaa'])
    })
  })

  test('messages of one batch get their seqs in its order, after those that were there', async () => {
    await bench.publish()
    const drafts = Array.from({ length: 20 }, () => draftOf())

    const written = eachRow(
      await bench.run(insertMessages(bench.names, { queue: 'orders', drafts, conflict: 'none' }, always)),
      drafts,
    )

    const bySeq = written.toSorted((a, b) => Number(a.seq) - Number(b.seq))
    expect(bySeq.map(({ id }) => id)).toEqual(drafts.map(({ id }) => id))
    expect(seqsOf(written)).toEqual(Array.from({ length: 20 }, (_, n) => String(n + 2)))
    expect(
      await bench.run(insertMessages(bench.names, { queue: 'q', drafts: [], conflict: 'none' }, always)),
    ).toEqual([])
  })

  test('messages of one batch have what each was given, and nothing of their neighbours', async () => {
    const bytes = (...body: number[]) => ({ body: new Uint8Array(body) })
    const drafts = [
      draftOf({ ...bytes(), generation: 1 }),
      draftOf({ ...bytes(1, 2), key: 'a,"b"\\', headers: { a: 'null' } }),
      draftOf({ ...bytes(3), ...inMinutes(5), key: 'null' }),
      draftOf({ ...bytes(), headers: { b: ',' }, key: '' }),
      draftOf({ ...bytes(4, 5, 6), schedule: { kind: 'at', epochMs: -1 }, timerId: 't' }),
    ]
    const batch = { queue: 'orders', drafts, conflict: 'keep' } as const
    const none = { key: null, timerId: null, headers: null, dueAt: null, generation: null }

    const written = eachRow(await bench.run(insertMessages(bench.names, batch, always)), drafts)

    expect(written).toEqual(drafts.map(({ id }, index) => ({ id, seq: String(index + 1) })))
    expect(await bench.rows()).toMatchObject([
      { ...none, body: '', generation: 1 },
      { ...none, body: 'AQI=', key: 'a,"b"\\', headers: { a: 'null' } },
      { ...none, body: 'Aw==', key: 'null', dueAt: 5 },
      { ...none, body: '', key: '', headers: { b: ',' } },
      { ...none, body: 'BAUG', timerId: 't' },
    ])
  })

  test('two messages may have the same id', async () => {
    const { id } = draftOf()

    expect([await bench.publish({ id }), await bench.publish({ id })]).toMatchObject([{ id }, { id }])
    expect(await bench.rows()).toHaveLength(2)
  })

  describe('what waits', () => {
    const peek = (given: { queue?: string; limit?: number } = {}) =>
      bench.run(peekPending(bench.names, { queue: null, limit: 10, mark: null, ...given }))

    test('is read in the order of seq, of one queue or all, up to the limit', async () => {
      await bench.publish({ queue: 'b' })
      await bench.publish({ queue: 'a', ...inMinutes(1) })
      await bench.publish({ queue: 'b' })

      const seqs = async (given?: Parameters<typeof peek>[0]) => (await peek(given)).map(({ seq }) => seq)
      expect(await seqs()).toEqual(['1', '2', '3'])
      expect(await seqs({ queue: 'b' })).toEqual(['1', '3'])
      expect(await seqs({ limit: 2 })).toEqual(['1', '2'])
      expect(await seqs({ queue: 'unknown' })).toEqual([])
    })

    test('is read as text, the name of a timer that is in flight included, and not what is dead', async () => {
      await bench.die({}, { place: 'quarantined' })
      const body = Buffer.from('{"n":1}')
      const draft = draftOf({ timerId: 't', key: 'k', headers: { a: 'b' }, generation: 7, body })
      await bench.publish(draft)
      await bench.publish(inMinutes(5))
      await bench.claim()

      const [fired, later, ...others] = await peek()
      const { now } = await bench.store.snapshot()
      expect(others).toEqual([])
      expect({ ...fired, headers: JSON.parse(fired!.headers!) }).toEqual({
        ...{ id: draft.id, seq: '2', queue: 'orders', key: 'k', timer: 't', body: body.toString('base64') },
        ...{ headers: { a: 'b' }, attempts: '0', deliveries: '1', created: expect.any(String), due: null },
        ...{ leased: 'true', generation: '7' },
      })
      expect(later).toMatchObject({
        key: null,
        timer: null,
        headers: null,
        leased: 'false',
        generation: null,
      })
      expect(minutesBetween(now, later!.due)).toBe(5)
      expect(minutesBetween(now, fired!.created)).toBe(0)
    })

    test('is in flight only until its lease ends', async () => {
      await bench.hold()
      await bench.store.advance(minute)

      expect(await peek()).toMatchObject([{ leased: 'false', deliveries: '1' }])
    })
  })

  describe('a mark', () => {
    const mark = 'm'
    const marked = (): readonly Statement<unknown>[] => [
      insertMessage(bench.names, draftOf(), { wake: 'always', mark }),
      insertMessages(
        bench.names,
        { queue: 'orders', drafts: [draftOf()], conflict: 'none' },
        { wake: 'always', mark },
      ),
      peekPending(bench.names, { queue: null, limit: 1, mark }),
      cancelTimer(bench.names, { queue: 'orders', timerId: 't', mark }),
    ]

    test('is there until its transaction ends: what asks for it does its work', async () => {
      await bench.publish({ timerId: 't' })
      const tx = await bench.store.begin()
      const isThere = async (other = mark) => (await tx.run(readMark(other)))[0]!.inside

      const before = await isThere()
      expect(await tx.run(markTransaction(mark))).toEqual([{ mark }])
      expect([before, await isThere(), await isThere('other')]).toEqual(['false', 'true', 'false'])
      for (const statement of marked()) expect(await tx.run(statement)).toHaveLength(1)
      await tx.commit()

      expect((await bench.rows()).map(({ timerId }) => timerId)).toEqual([null, null])
    })

    test('is gone at once outside a transaction: what asks for it touches nothing', async () => {
      await bench.publish({ timerId: 't' })
      await bench.run(markTransaction(mark))

      expect(await bench.run(readMark(mark))).toEqual([{ inside: 'false' }])
      for (const statement of marked()) expect(await bench.run(statement)).toEqual([])
      expect(await bench.rows()).toMatchObject([{ timerId: 't' }])
    })
  })
}
