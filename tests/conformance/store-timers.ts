import { describe, expect, test } from 'vitest'
import type { Draft } from '../../packages/postbox/src/core/message.ts'
import { insertMessages } from '../../packages/postbox/src/sql/insert-messages.ts'
import { eachRow } from '../../packages/postbox/src/sql/insert-plain.ts'
import { type Release, releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { draftOf, otherToken, stateOf } from '../support/settle-bench.ts'
import { inMinutes, minute, type StoreBench } from './store-bench.ts'

const daily = { timerId: 'daily' }
const replacing = { ...daily, conflict: 'replace' } as const

type PutBack = (fences: readonly Release[], takeNames?: boolean) => Statement<{ readonly seq: string }>

function puttingBackOf(bench: StoreBench): readonly (readonly [string, PutBack])[] {
  const withAll = <T>(fences: readonly Release[], given: T) => fences.map((fence) => ({ ...fence, ...given }))
  return [
    [
      'retried',
      (fences, names = true) =>
        rescheduleRetried(bench.names, withAll(fences, { delayMs: 0, error: null }), names),
    ],
    [
      'snoozed',
      (fences, names = true) => snoozeMessages(bench.names, withAll(fences, { delayMs: 0 }), names),
    ],
    ['released', (fences, names = true) => releaseLeases(bench.names, fences, names)],
  ]
}

export function describeTimers(bench: StoreBench): void {
  const namesOf = async (): Promise<readonly (readonly [string | null, string | null])[]> =>
    (await bench.rows()).map(({ timerId, firedTimerId }) => [timerId, firedTimerId] as const)

  // F-19
  test('a timer is armed once per queue: the second is dropped, and its seq used up', async () => {
    const first = await bench.publish({ ...daily, ...inMinutes(5) })

    expect(await bench.publish({ ...daily, key: 'second' })).toBeNull()
    expect(await bench.publish({ ...daily, queue: 'mails' })).toMatchObject({ seq: '3' })
    expect(await bench.publish({ timerId: 'weekly' })).toMatchObject({ seq: '4' })
    expect(await bench.rows()).toMatchObject([{ id: first!.id, key: null, dueAt: 5 }, {}, {}])
  })

  test('a batch arms what is not armed: of two of one name the first, and says which', async () => {
    await bench.publish({ timerId: 'b' })
    const drafts = ['a', 'b', 'a', 'c'].map((timerId) => draftOf({ timerId }))
    const batch = { queue: 'orders', drafts: [...drafts, draftOf()], conflict: 'keep' } as const

    const written = eachRow(
      await bench.run(insertMessages(bench.names, batch, { wake: 'always', mark: null })),
      batch.drafts,
    )

    const expected = [drafts[0], drafts[3], batch.drafts[4]].map((draft) => draft!.id)
    expect(written.map(({ id }) => id).toSorted()).toEqual(expected.toSorted())
    expect((await bench.rows()).map(({ seq, timerId }) => [seq, timerId])).toEqual([
      ['1', 'b'],
      ['2', 'a'],
      ['5', 'c'],
      ['6', null],
    ])
  })

  test('a timer that replaces one that waits takes its place, as a new message', async () => {
    await bench.publish({ ...daily, key: 'old', headers: { a: 'b' }, generation: 1 })
    const { fences } = await bench.claim()
    await bench.run(rescheduleRetried(bench.names, [{ ...fences[0]!, delayMs: minute, error: 'bad' }], true))
    await bench.store.advance(3 * minute)
    const draft = draftOf({ ...replacing, key: 'new', body: Buffer.from('new'), ...inMinutes(7) })

    expect(await bench.publish(draft)).toMatchObject({ id: draft.id, seq: '1' })

    expect(await bench.rows()).toEqual([
      {
        ...{ seq: '1', id: draft.id, queue: 'orders', key: 'new', timerId: 'daily', firedTimerId: null },
        ...{ laterKey: null, parkedAt: null, afterDead: null },
        ...{
          body: Buffer.from('new').toString('base64'),
          headers: null,
          generation: null,
          createdAt: 0,
          dueAt: 7,
        },
        ...{ attempts: 0, deliveries: 0, firstAttemptAt: null, lastAttemptAt: null, lastError: null },
        ...{ leaseToken: null, leasedUntil: null, failedAt: null, failureReason: null, failureHistory: null },
      },
    ])
  })

  test('a timer that replaces another and is due at once is due, not fresh: its seq lies below every cursor', async () => {
    await bench.publish({ ...daily, ...inMinutes(5) })
    await bench.publish(replacing)

    expect(await bench.rows()).toMatchObject([{ dueAt: 0 }])
    expect((await bench.claim({ after: '9' })).seqs).toEqual(['1'])
  })

  test('a timer that would replace one is armed where none waits, and beside one that is in flight', async () => {
    await bench.publish({ ...replacing, key: 'first' })
    await bench.claim()
    await bench.publish({ ...replacing, key: 'second' })

    expect(await bench.rows()).toMatchObject([
      { key: 'first', timerId: null },
      { key: 'second', dueAt: null },
    ])
  })

  test('a replaced timer has no history', async () => {
    const id = await bench.die(daily)
    const replay = { id, by: 'me', generation: null, delayMs: 0, historyLimit: 20, wake: 'always' } as const
    await bench.run(replayDeadLetter(bench.names, replay))
    const [before] = await bench.rows()
    await bench.publish(replacing)

    expect(before!.failureHistory).toMatchObject({ dropped: 0 })
    expect(await bench.rows()).toMatchObject([{ seq: before!.seq, failureHistory: null }])
  })

  // F-19
  test('a timer that waits is cancelled, whenever it is due; one that is unknown, or of another queue, is not', async () => {
    for (const draft of [daily, { timerId: 'later', ...inMinutes(5) }, { timerId: 'other' }])
      await bench.publish(draft)

    expect([await bench.cancel('daily'), await bench.cancel('later')]).toEqual([true, true])
    expect([await bench.cancel('daily'), await bench.cancel('unknown')]).toEqual([false, false])
    expect(await bench.cancel('other', { queue: 'mails' })).toBe(false)
    expect((await bench.rows()).map(({ timerId }) => timerId)).toEqual(['other'])
    expect(await bench.publish(daily)).not.toBeNull()
  })

  // F-19
  test('a timer that is in flight has given its name up: it is not cancelled, and the next one can be armed', async () => {
    await bench.publish(daily)
    const { messages } = await bench.claim()

    expect(messages).toMatchObject([{ timer: 'daily' }])
    expect(await namesOf()).toEqual([[null, 'daily']])
    expect(await bench.cancel('daily')).toBe(false)
    expect(await bench.publish(daily)).not.toBeNull()
    expect(await bench.publish(daily)).toBeNull()
    expect(await namesOf()).toEqual([
      [null, 'daily'],
      ['daily', null],
    ])
  })

  test('a timer whose lease has ended is claimed again under its name', async () => {
    await bench.hold([daily])
    await bench.store.advance(2 * minute)

    expect((await bench.claim({ token: otherToken })).messages).toMatchObject([
      { timer: 'daily', deliveries: '1', suspect: 'true' },
    ])
    expect(await namesOf()).toEqual([[null, 'daily']])
  })

  test('the name of a timer that is dead is free, wherever it lies', async () => {
    await bench.die(daily)
    await bench.die(daily, { place: 'quarantined' })

    expect(await bench.publish(daily)).not.toBeNull()
    expect(await bench.dead()).toMatchObject([{ timerId: 'daily' }])
    expect(await namesOf()).toEqual([
      [null, 'daily'],
      ['daily', null],
    ])
  })

  describe.each(puttingBackOf(bench))('a timer that is %s', (_, putBack) => {
    test('takes its name back: it is kept, replaced and cancelled as before', async () => {
      await bench.run(putBack(await bench.hold([daily])))

      expect(await namesOf()).toEqual([['daily', null]])
      expect(await bench.publish(daily)).toBeNull()
      expect(await bench.publish(replacing)).toMatchObject({ seq: '1' })
      expect(await bench.cancel('daily')).toBe(true)
    })

    test('goes on without its name when somebody has armed another, and takes it the next time', async () => {
      const fences = await bench.hold([daily])
      await bench.publish({ ...daily, ...inMinutes(60) })

      await bench.run(putBack(fences))
      const without = await namesOf()
      await bench.cancel('daily')
      await bench.store.advance(1)
      const { messages, fences: again } = await bench.claim({ room: 1 })
      await bench.run(putBack(again))

      expect(without).toEqual([
        [null, 'daily'],
        ['daily', null],
      ])
      expect(messages).toMatchObject([{ seq: '1', timer: 'daily' }])
      expect(await namesOf()).toEqual([['daily', null]])
      expect(await bench.publish(daily)).toBeNull()
    })

    test('leaves its name when it is told to, and keeps it for the next time', async () => {
      await bench.run(putBack(await bench.hold([daily]), false))

      expect(await namesOf()).toEqual([[null, 'daily']])
      expect(await bench.publish({ ...daily, ...inMinutes(60) })).not.toBeNull()
    })

    test('leaves the names of other queues alone', async () => {
      const fences = await bench.hold([daily])
      await bench.publish({ ...daily, queue: 'mails' })
      await bench.run(putBack(fences))

      expect(await namesOf()).toEqual([
        ['daily', null],
        ['daily', null],
      ])
    })

    test('wants a name that another one of the same statement wants, too: all of it fails', async () => {
      const first = await bench.hold([daily])
      const second = await bench.hold([daily])
      const other = await bench.hold([{ key: 'other' }])
      const before = await bench.store.snapshot()

      expect(await stateOf(bench.run(putBack([...other, ...first, ...second])))).toBe('23505')
      expect((await bench.store.snapshot()).messages).toEqual(before.messages)
    })
  })

  test('a message that was never a timer goes back without a name', async () => {
    await bench.run(
      releaseLeases(
        bench.names,
        await bench.hold([{ key: 'a' }, { key: 'b' }] satisfies Partial<Draft>[]),
        true,
      ),
    )

    expect(await namesOf()).toEqual([
      [null, null],
      [null, null],
    ])
  })
}
