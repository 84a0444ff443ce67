import { describe, expect, test } from 'vitest'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { extendLeases } from '../../packages/postbox/src/sql/extend-leases.ts'
import { type Release, releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { draftOf, stateOf } from '../support/settle-bench.ts'
import type { StoreTransaction } from '../support/stores.ts'
import { inMinutes, type StoreBench } from './store-bench.ts'

const daily = { timerId: 'daily' }

/** Settlements wait for nobody: those of all queues would wait with them. */
export function describeImpatience(bench: StoreBench): void {
  const arm = (tx: StoreTransaction) => bench.publish({ ...daily, key: 'first' }, tx)
  const cancel = (tx: StoreTransaction) => bench.cancel('daily', { on: tx })

  type Settle = (fences: readonly Release[], takeNames?: boolean) => Statement<{ readonly seq: string }>
  const withAll = <T>(fences: readonly Release[], given: T) => fences.map((fence) => ({ ...fence, ...given }))
  const puttingBack: readonly (readonly [string, Settle])[] = [
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

  describe.each(puttingBack)('a timer that is %s', (_, putBack) => {
    test('does not wait for who is about to arm its name: it fails, or does without', async () => {
      const fences = await bench.hold([daily])
      const tx = await bench.store.begin()
      await arm(tx)
      const before = await bench.store.snapshot()

      expect(await stateOf(bench.run(putBack(fences)))).toBe('55P03')
      expect((await bench.store.snapshot()).messages).toEqual(before.messages)
      expect(await bench.run(putBack(fences, false))).toMatchObject([{ seq: '1' }])
      await tx.commit()
      expect(await bench.rows()).toMatchObject([
        { timerId: null, firedTimerId: 'daily' },
        { timerId: 'daily' },
      ])
    })

    test('goes on without its name when who gives it up has not committed', async () => {
      const fences = await bench.hold([daily])
      await bench.publish({ ...daily, ...inMinutes(5) })
      const tx = await bench.store.begin()
      await cancel(tx)

      expect(await bench.run(putBack(fences))).toMatchObject([{ seq: '1' }])
      await tx.commit()
      expect(await bench.rows()).toMatchObject([{ timerId: null, firedTimerId: 'daily' }])
    })

    test('does not wait for who has locked its row', async () => {
      const fences = await bench.hold([daily])
      const tx = await bench.store.begin()
      await tx.run(extendLeases(bench.names, withAll(fences, { leaseMs: 1 })))

      expect(await stateOf(bench.run(putBack(fences)))).toBe('55P03')
      await tx.rollback()
      expect(await bench.run(putBack(fences))).toMatchObject([{ seq: '1' }])
    })
  })

  test('a follow-on that is a timer does not wait for who is about to arm its name: its message stays', async () => {
    const [fence] = await bench.hold()
    const tx = await bench.store.begin()
    await arm(tx)
    const settle = (followOns = [draftOf(daily)]) =>
      bench.run(deleteWithFollowOns(bench.names, { settled: [{ ...fence!, followOns }], wake: 'always' }))

    expect(await stateOf(settle())).toBe('55P03')
    expect(await bench.rows()).toMatchObject([{ seq: '1', leaseToken: fence!.token }])
    expect(await settle([draftOf()])).toMatchObject([{ seq: '1' }])
    await tx.rollback()
  })

  test.each(['keep', 'replace'] as const)(
    'a follow-on that is a timer (%s) does not wait for who gives its name up',
    async (conflict) => {
      await bench.publish({ ...daily, ...inMinutes(5) })
      const [fence] = await bench.hold()
      const tx = await bench.store.begin()
      await cancel(tx)
      const settled = [{ ...fence!, followOns: [draftOf({ ...daily, conflict })] }]

      expect(await stateOf(bench.run(deleteWithFollowOns(bench.names, { settled, wake: 'always' })))).toBe(
        '55P03',
      )
      await tx.commit()
      expect(await bench.rows()).toMatchObject([{ leaseToken: fence!.token }])
    },
  )
}
