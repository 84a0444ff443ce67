import type { OutboxEvent } from 'postbox'
import { describe, expect, test } from 'vitest'
import { countDelivery } from '../../packages/postbox/src/sql/count-delivery.ts'
import { deleteAcked } from '../../packages/postbox/src/sql/delete-acked.ts'
import { type Release, releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import { otherToken } from '../support/settle-bench.ts'
import { collector } from '../support/signals.ts'
import { minute, type StoreBench, seqsOf, token } from './store-bench.ts'
import { outboxBench } from './store-outbox-bench.ts'

/** Messages whose process died, or lost its lease: leased uncounted, counted when they are run. */
export function describeSuspects(bench: StoreBench): void {
  const { open } = outboxBench(bench)
  /** So many messages whose lease has ended. */
  const abandon = async (count = 1): Promise<void> => {
    await bench.hold(count)
    await bench.store.advance(2 * minute)
  }
  const count = ({ seq, token, deliveriesBefore }: Release) =>
    bench.run(countDelivery(bench.names, { seq, token, deliveries: deliveriesBefore + 1 }))
  const deliveries = async () => (await bench.rows()).map((row) => row.deliveries)
  const suspects = async (as = otherToken) =>
    (await bench.claim({ token: as })).messages.map(({ suspect }) => suspect)

  test('are told by a claim, which does not count them; the others it counts', async () => {
    await abandon(2)
    await bench.publish()
    const { messages } = await bench.claim({ token: otherToken })

    expect(messages.map((row) => [row.seq, row.deliveries, row.suspect])).toEqual([
      ['1', '1', 'true'],
      ['2', '1', 'true'],
      ['3', '1', 'false'],
    ])
    expect(await deliveries()).toEqual([1, 1, 1])
  })

  test('one that failed, was given back or snoozed is none', async () => {
    const [failed, released, snoozed] = await bench.hold(3)
    await bench.run(rescheduleRetried(bench.names, [{ ...failed!, delayMs: 0, error: 'bad' }], true))
    await bench.run(releaseLeases(bench.names, [released!], true))
    await bench.run(snoozeMessages(bench.names, [{ ...snoozed!, delayMs: 0 }], true))
    await bench.store.advance(1)

    expect([await suspects(), await deliveries()]).toEqual([
      ['false', 'false', 'false'],
      [2, 1, 1],
    ])
  })

  test('one that failed after it was counted is one still: what ended in silence did', async () => {
    await abandon()
    const [lease] = (await bench.claim()).fences
    await count(lease!)
    await bench.run(rescheduleRetried(bench.names, [{ ...lease!, delayMs: 0, error: 'bad' }], true))
    await bench.store.advance(1)

    expect([await suspects(), await deliveries()]).toEqual([['true'], [2]])
  })

  test('are counted by the holder of their lease, once however often he says so', async () => {
    await abandon(2)
    const [lease, other] = (await bench.claim()).fences
    const answers = [await count(lease!), await count(lease!)]

    expect(answers.map(seqsOf)).toEqual([['1'], ['1']])
    expect(await deliveries()).toEqual([2, 1])
    expect(await count({ ...other!, token: otherToken })).toEqual([])
    await bench.run(deleteAcked(bench.names, [lease!]))
    expect(await count(lease!)).toEqual([])
    expect(await deliveries()).toEqual([1])
  })

  test('one that somebody else has taken over meanwhile is not counted by who had it', async () => {
    await abandon()
    const [lease] = (await bench.claim({ leaseMs: minute })).fences
    await bench.store.advance(2 * minute)
    await bench.claim({ token: otherToken })
    const before = await bench.store.snapshot()

    expect(await count(lease!)).toEqual([])
    expect((await bench.store.snapshot()).messages).toEqual(before.messages)
  })

  test.each([
    ['released', false],
    ['released', true],
    ['snoozed', false],
    ['snoozed', true],
  ] as const)(
    'one that is %s has as many deliveries as before, counted (%s) or not',
    async (how, isCounted) => {
      await abandon()
      const [lease] = (await bench.claim()).fences
      if (isCounted) await count(lease!)
      await bench.run(
        how === 'released'
          ? releaseLeases(bench.names, [lease!], true)
          : snoozeMessages(bench.names, [{ ...lease!, delayMs: 0 }], true),
      )
      await bench.store.advance(1)

      expect([await deliveries(), await suspects(token)]).toEqual([[1], ['true']])
    },
  )

  describe('of an outbox', () => {
    test('are run one at a time, each with its number, and are told so', async () => {
      await abandon(3)
      const events = collector<OutboxEvent>('events')
      const { outbox } = open({ onEvent: events.add })
      const running = { now: 0, most: 0 }
      const got = collector<number>('deliveries')
      outbox.subscribe(
        'orders',
        async (message) => {
          running.most = Math.max(running.most, ++running.now)
          // Everybody else has his chance.
          await new Promise((resolve) => setImmediate(resolve))
          running.now--
          got.add(message.deliveries)
        },
        { concurrency: 10 },
      )
      await outbox.start()
      await events.find(({ kind }) => kind === 'acked' && kindsOf(events.all, 'acked') === 3)

      expect([got.all, running.most]).toEqual([[2, 2, 2], 1])
      const dispatched = events.all.filter((event) => event.kind === 'dispatched')
      expect(dispatched.map(({ isSuspect }) => isSuspect)).toEqual([true, true, true])
      expect(await bench.rows()).toEqual([])
    })
  })
}

function kindsOf(events: readonly OutboxEvent[], kind: OutboxEvent['kind']): number {
  return events.filter((event) => event.kind === kind).length
}
