import { describe, expect, test } from 'vitest'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { findBuried } from '../../packages/postbox/src/sql/find-buried.ts'
import { quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { type Release, releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { draftOf, otherToken } from '../support/settle-bench.ts'
import { inMinutes, minute, type StoreBench, seqsOf, token } from './store-bench.ts'

type Settle = (fences: readonly Release[]) => Statement<{ readonly seq: string }>

const withAll = <T>(fences: readonly Release[], given: T) => fences.map((fence) => ({ ...fence, ...given }))
const burial = { reason: 'rejected', error: 'bad', attempts: 1 }

/** Every statement that settles, by what becomes of a message. */
function settlingOf(bench: StoreBench): readonly (readonly [string, Settle])[] {
  const puttingBack = [false, true].flatMap((named): (readonly [string, Settle])[] => {
    const how = named ? ', with names' : ''
    const retried = { delayMs: minute, error: 'bad' }
    return [
      [`retried${how}`, (fences) => rescheduleRetried(bench.names, withAll(fences, retried), named)],
      [`snoozed${how}`, (fences) => snoozeMessages(bench.names, withAll(fences, { delayMs: minute }), named)],
      [`released${how}`, (fences) => releaseLeases(bench.names, fences, named)],
    ]
  })
  return [
    ...(['delete', 'table'] as const).flatMap((delivered): (readonly [string, Settle])[] => {
      const how = delivered === 'table' ? ' and kept' : ''
      return [
        [`acknowledged${how}`, (fences) => deleteAcked(bench.names, fences, { delivered })],
        [
          `acknowledged${how}, with follow-ons`,
          (fences) => {
            const settled = fences.map((fence) => ({ ...fence, followOns: [draftOf({ queue: 'mails' })] }))
            return deleteWithFollowOns(bench.names, { settled, wake: 'always', delivered })
          },
        ],
      ]
    }),
    ...puttingBack,
    ['buried', (fences) => buryDead(bench.names, withAll(fences, burial))],
    ['quarantined', (fences) => quarantineDead(bench.names, withAll(fences, burial))],
  ]
}

export function describeSettling(bench: StoreBench): void {
  const timer = (n: number) => ({ timerId: `timer ${n}` })

  describe.each(settlingOf(bench))('messages that are %s', (_, settle) => {
    // C-09, C-11, C-12: the token matches, another token, one that is not leased, no message at all.
    test('are written by the holder of their lease: the others are left as they are, and do not come back', async () => {
      const fences = await bench.hold([timer(1), timer(2), timer(3), timer(4)])
      await bench.run(releaseLeases(bench.names, [fences[2]!], true))
      const before = await bench.store.snapshot()
      const [first, second, third, last] = fences
      const wrong = [{ ...second!, token: otherToken }, third!, { ...first!, seq: '99' }]

      const written = await bench.run(settle([first!, ...wrong, last!]))

      expect(seqsOf(written)).toEqual(['1', '4'])
      const left = (await bench.store.snapshot()).messages.filter(({ seq }) => seq === '2' || seq === '3')
      expect(left).toEqual(before.messages.slice(1, 3))
      expect((await bench.rows()).filter(({ leaseToken }) => leaseToken !== null)).toHaveLength(1)
    })

    // C-11
    test('may be none', async () => {
      await bench.hold()

      expect(await bench.run(settle([]))).toEqual([])
      expect(await bench.rows()).toMatchObject([{ leaseToken: token }])
    })

    test('are written once: the same statement again writes nothing', async () => {
      const fences = await bench.hold([timer(1), timer(2)])
      await bench.run(settle(fences))
      const { now: _, ...after } = await bench.store.snapshot()

      expect(await bench.run(settle(fences))).toEqual([])
      expect(await bench.store.snapshot()).toMatchObject(after)
    })

    test('are written when their lease has ended, as long as nobody else has claimed them', async () => {
      const fences = await bench.hold(2)
      await bench.store.advance(2 * minute)
      await bench.claim({ token: otherToken, room: 1 })

      expect(seqsOf(await bench.run(settle(fences)))).toEqual(['2'])
    })
  })

  // C-09
  test('a message that is acknowledged is gone, from wherever it was', async () => {
    await bench.publish(inMinutes(1))
    await bench.store.advance(2 * minute)
    const fences = await bench.hold(2)

    await bench.run(deleteAcked(bench.names, fences))

    expect(await bench.store.snapshot()).toMatchObject({ messages: [], dead: [] })
    expect((await bench.claim()).queue).toMatchObject({ nextdue: null, lowest: null, top: '3' })
  })

  describe('a message that is retried', () => {
    const retry = (fences: readonly Release[], given: { delayMs?: number; error?: string | null } = {}) =>
      bench.run(
        rescheduleRetried(bench.names, withAll(fences, { delayMs: minute, error: 'bad', ...given }), true),
      )

    // C-12
    test('is free, due after its own delay from now on, and has one attempt more', async () => {
      const [first, second] = await bench.hold(2)

      await retry([first!], { delayMs: 5 * minute })
      await retry([second!], { delayMs: 1_500.25 })

      const { messages } = await bench.store.snapshot()
      const delays = messages.map(({ dueAt, lastAttemptAt }) => dueAt! - lastAttemptAt!)
      expect(delays).toEqual([expect.closeTo(5 * minute, 2), expect.closeTo(1_500.25, 2)])
      expect(messages).toMatchObject([first, second].map(() => ({ ...free, attempts: 1, deliveries: 1 })))
    })

    test('keeps the time of its first failure, and has the time and the error of its last', async () => {
      await retry(await bench.hold())
      await bench.store.advance(3 * minute)
      const before = await bench.rows()
      await retry((await bench.claim()).fences, { error: null })

      expect(before).toMatchObject([{ firstAttemptAt: -3, lastAttemptAt: -3, lastError: 'bad' }])
      expect(await bench.rows()).toMatchObject([
        { firstAttemptAt: -3, lastAttemptAt: 0, lastError: null, attempts: 2, deliveries: 2, createdAt: -3 },
      ])
    })
  })

  test('a message that is snoozed is due after its own delay, and nothing else tells that it was delivered', async () => {
    await bench.publish({ key: 'k' })
    const { fences } = await bench.claim()
    await bench.run(rescheduleRetried(bench.names, [{ ...fences[0]!, delayMs: 0, error: 'bad' }], true))
    const before = await bench.rows()
    await bench.store.advance(1)
    const [again] = (await bench.claim()).fences

    await bench.run(snoozeMessages(bench.names, [{ ...again!, delayMs: 5 * minute }], true))

    expect(await bench.rows()).toEqual([{ ...before[0]!, dueAt: 5 }])
    expect(before).toMatchObject([{ ...free, attempts: 1, deliveries: 1, lastError: 'bad' }])
  })

  test('a message that is released is as it was before it was claimed, in its old place', async () => {
    await bench.publish()
    await bench.publish(inMinutes(1))
    await bench.store.advance(2 * minute)
    const before = await bench.rows()
    const { fences } = await bench.claim()

    await bench.run(releaseLeases(bench.names, fences, true))

    expect(await bench.rows()).toEqual(before)
    expect(before).toMatchObject([
      { ...free, dueAt: null, deliveries: 0 },
      { ...free, dueAt: -1 },
    ])
  })

  // C-10
  test('a message that is buried is moved with everything that it had, and what it died of', async () => {
    const draft = draftOf({
      key: 'k',
      timerId: 't',
      headers: { a: 'b' },
      generation: 7,
      body: Buffer.from([0, 255]),
    })
    const fences = await bench.hold([draft])

    await bench.run(buryDead(bench.names, withAll(fences, burial)))

    expect(await bench.rows()).toEqual([])
    expect(await bench.dead()).toEqual([
      {
        ...{
          seq: '1',
          originalSeq: '1',
          id: draft.id,
          queue: 'orders',
          key: 'k',
          timerId: 't',
          body: 'AP8=',
        },
        ...{ headers: { a: 'b' }, generation: 7, deliveries: 1, createdAt: 0, failureHistory: null },
        ...{ attempts: 1, firstAttemptAt: 0, lastAttemptAt: 0 },
        ...{ failedAt: 0, failureReason: 'rejected', lastError: 'bad' },
      },
    ])
  })

  test('a message that is quarantined is dead where it lies: due never, without its lease and the name of its timer', async () => {
    const draft = draftOf({
      key: 'k',
      timerId: 't',
      headers: { a: 'b' },
      generation: 7,
      body: Buffer.from([0, 255]),
    })
    const fences = await bench.hold([draft])

    await bench.run(quarantineDead(bench.names, withAll(fences, burial)))

    expect(await bench.dead()).toEqual([])
    expect(await bench.rows()).toEqual([
      {
        ...{
          seq: '1',
          id: draft.id,
          queue: 'orders',
          key: 'k',
          timerId: null,
          firedTimerId: 't',
          ...{ laterKey: null, parkedAt: null, afterDead: null },
          body: 'AP8=',
        },
        ...{ headers: { a: 'b' }, generation: 7, deliveries: 1, createdAt: 0, failureHistory: null },
        ...{ attempts: 1, firstAttemptAt: 0, lastAttemptAt: 0, ...free, dueAt: Number.POSITIVE_INFINITY },
        ...{ failedAt: 0, failureReason: 'rejected', lastError: 'bad' },
        ...{ laterKey: null, parkedAt: null, afterDead: null },
      },
    ])
  })

  describe.each(['moved', 'quarantined'] as const)('a message that dies, %s', (place) => {
    const settle = place === 'moved' ? buryDead : quarantineDead
    const found = async () => [...(await bench.dead()), ...(await bench.rows())]

    /** Failed once, four minutes ago, and claimed again. */
    const failedBefore = async (): Promise<readonly Release[]> => {
      const fences = await bench.hold()
      await bench.run(rescheduleRetried(bench.names, withAll(fences, { delayMs: 0, error: 'before' }), true))
      await bench.store.advance(4 * minute)
      return (await bench.claim()).fences
    }

    test('of a run has the time of its first failure, and that of this one', async () => {
      await bench.run(settle(bench.names, withAll(await failedBefore(), { ...burial, attempts: 2 })))

      expect(await found()).toMatchObject([
        { attempts: 2, deliveries: 2, firstAttemptAt: -4, lastAttemptAt: 0 },
      ])
    })

    test('without a run has no attempt more, and the times of those that it had', async () => {
      const reason = { reason: 'max_deliveries', error: null, attempts: 1 }
      await bench.run(settle(bench.names, withAll(await failedBefore(), reason)))

      expect(await found()).toMatchObject([
        {
          attempts: 1,
          firstAttemptAt: -4,
          lastAttemptAt: -4,
          failedAt: 0,
          failureReason: 'max_deliveries',
          lastError: null,
        },
      ])
    })

    test('without any run has no times of runs', async () => {
      await bench.run(settle(bench.names, withAll(await bench.hold(), { ...burial, attempts: 0 })))

      expect(await found()).toMatchObject([{ attempts: 0, firstAttemptAt: null, lastAttemptAt: null }])
    })
  })

  test('dead letters get seqs of their own', async () => {
    await bench.run(deleteAcked(bench.names, await bench.hold(2)))
    for (const place of ['moved', 'quarantined', 'moved'] as const) await bench.die({}, { place })

    expect((await bench.dead()).map(({ seq, originalSeq }) => [seq, originalSeq])).toEqual([
      ['1', '3'],
      ['2', '5'],
    ])
  })

  test.each([
    ['moved', 'quarantined'],
    ['quarantined', 'moved'],
  ] as const)(
    'those that were buried are found where they are looked for (%s), by id, place and delivery',
    async (place, other) => {
      const ids = [
        await bench.die({}, { place }),
        await bench.die({}, { place }),
        await bench.die({}, { place: other }),
      ]
      await bench.hold(1)
      const [first, second, third] = ids.map((id, n) => ({ id, seq: String(n + 1), deliveries: 1 }))
      const alive = { id: (await bench.rows()).at(-1)!.id, seq: '4', deliveries: 1 }
      const find = (...asked: readonly (typeof alive)[]) => bench.run(findBuried(bench.names, asked, place))

      expect(await find(first!, { ...second!, seq: '1' }, { ...first!, seq: '2' }, third!, alive)).toEqual([
        { seq: '1' },
      ])
      expect(await find({ ...second!, id: second!.id.toUpperCase() })).toEqual([{ seq: '2' }])
      // Somebody claimed it after us, and buried it: he tells of it.
      expect(await find({ ...first!, deliveries: 2 }, { ...second!, deliveries: 0 })).toEqual([])
      expect(await find()).toEqual([])
    },
  )
}

const free = { leaseToken: null, leasedUntil: null }
