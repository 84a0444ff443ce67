import { describe, expect, test } from 'vitest'
import { historyFrom } from '../../packages/postbox/src/core/failure-history.ts'
import type { KeyListQuery } from '../../packages/postbox/src/core/key-options.ts'
import { countMessages } from '../../packages/postbox/src/sql/count-messages.ts'
import { getDeadLetter } from '../../packages/postbox/src/sql/get-dead-letter.ts'
import { listKeys, mostWaiting } from '../../packages/postbox/src/sql/list-keys.ts'
import { listOperations } from '../../packages/postbox/src/sql/list-operations.ts'
import { registerQueues } from '../../packages/postbox/src/sql/register-queues.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import { snoozeMessages } from '../../packages/postbox/src/sql/snooze-messages.ts'
import { draftOf } from '../support/settle-bench.ts'
import { inMinutes, minute, minutesBetween, type StoreBench, token } from './store-bench.ts'
import { type KeyBench, lane, useKeys } from './store-key-bench.ts'

export function describeKeys(bench: StoreBench): void {
  const keys = useKeys(bench)
  describeResuming(keys)
  describeSkipping(keys)
  describe('the list', () => describeList(keys))
  test('whoever has a queue without the order that is written down of it is told', async () => {
    const others = ['plain', lane]

    expect(await bench.run(registerQueues(bench.names, { ordered: [], others }))).toEqual([{ name: lane }])
  })

  test('keys that are parked are counted by their queue', async () => {
    await keys.die('parked', { key: 'a' })
    await keys.die('parked', { key: 'b' })
    await keys.die('quarantined', { key: 'c' })

    const counted = await bench.run(countMessages(bench.names, [lane, 'orders'], 10))
    expect(counted).toMatchObject([
      { queue: lane, parked: '2', manyparked: 'false', scheduled: '0' },
      { queue: 'orders', parked: '0' },
    ])
    expect(await bench.run(countMessages(bench.names, [lane], 2))).toMatchObject([{ manyparked: 'true' }])
  })
}

function describeResuming({ bench, ...keys }: KeyBench): void {
  test('a key that is resumed begins with the message that held it, in its place, as one that nothing has happened to', async () => {
    const id = await keys.die('parked', { generation: 7 })
    const behind = await keys.publish()
    expect(await keys.claim()).toEqual([])

    expect(await keys.resume('a')).toBe(id)

    expect(await keys.row(id)).toMatchObject({
      ...{ seq: '1', key: 'a', generation: 7, dueAt: 0, attempts: 0, deliveries: 0, parkedAt: null },
      ...{ failedAt: null, failureReason: null, lastError: null, firstAttemptAt: null },
    })
    expect((await keys.handleAll()).map((row) => row.id)).toEqual([id, behind])
  })

  test('its history tells of the life that ended, and who resumed it', async () => {
    const id = await keys.die('parked')
    await keys.resume('a')

    const { cycles } = historyFrom(JSON.stringify((await keys.row(id)).failureHistory))
    expect(cycles).toMatchObject([
      { reason: 'rejected', error: 'bad', attempts: 1, deliveries: 1, replayedBy: 'ann', operation: null },
    ])
  })

  test('its timer takes its name again, unless another one waits: then it goes on without', async () => {
    const timer = { timerId: 't', conflict: 'keep' } as const
    const first = await keys.die('parked', { key: 'a', ...timer })
    const second = await keys.die('parked', { key: 'b', ...timer })

    expect([await keys.resume('a'), await keys.resume('b')]).toEqual([first, second])

    expect(await keys.row(first)).toMatchObject({ timerId: 't', firedTimerId: null })
    expect(await keys.row(second)).toMatchObject({ timerId: null, firedTimerId: 't' })
  })

  test.each(['resume', 'skip'] as const)('nothing is there to %s where nothing is parked', async (how) => {
    const moved = await keys.die('quarantined')
    await keys.publish()
    const before = await bench.store.snapshot()

    expect([await keys[how]('a'), await keys[how]('b')]).toEqual([null, null])
    expect(await bench.store.snapshot()).toMatchObject({ messages: before.messages })
    expect(await keys.row(moved)).toMatchObject({ parkedAt: null, failedAt: 0 })
  })
}

function describeSkipping({ bench, ...keys }: KeyBench): void {
  test('a key that is skipped goes on with the next message, which says who died; the first stays dead', async () => {
    const id = await keys.die('parked')
    const [next, last] = [await keys.publish(), await keys.publish()]
    await keys.publish({ key: 'b' })

    expect(await keys.skip('a')).toBe(id)

    expect(await keys.row(id)).toMatchObject({ failedAt: 0, parkedAt: null, dueAt: Number.POSITIVE_INFINITY })
    expect(await keys.row(next)).toMatchObject({ afterDead: id, dueAt: 0 })
    expect(await keys.row(last)).toMatchObject({ afterDead: null, dueAt: null })
    const handled = await keys.handleAll()
    expect(handled.filter(({ key }) => key === 'a')).toMatchObject([
      { id: next, afterdead: id },
      { id: last, afterdead: null },
    ])
    expect(await bench.run(getDeadLetter(bench.names, id))).toMatchObject([{ id, parked: 'false' }])
  })

  test('what comes later does not say who died', async () => {
    await keys.die('parked')
    await keys.skip('a')
    await keys.publish()

    expect(await keys.claim()).toMatchObject([{ afterdead: null }])
  })

  test('a timer that is replaced, and goes elsewhere, does not say who died before the one that it replaces', async () => {
    const timer = { timerId: 't', conflict: 'keep' } as const
    const id = await keys.die('parked')
    const waiting = await keys.publish(timer)
    await keys.skip('a')
    expect(await keys.row(waiting)).toMatchObject({ afterDead: id })

    await keys.publish({ ...timer, key: null, conflict: 'replace' })

    expect(await keys.claim()).toMatchObject([{ key: null, timer: 't', afterdead: null }])
  })

  test('it is written down who skipped what', async () => {
    const id = await keys.die('parked')
    await keys.skip('a')

    const [operation] = await bench.run(listOperations(bench.names, { limit: 1, after: null }))
    expect(operation).toMatchObject({ kind: 'skip', by: 'ann', changed: '1' })
    expect(JSON.parse(operation!.filter)).toEqual({ queue: lane, key: 'a', id })
    expect(operation!.finished).not.toBeNull()
  })

  test('a message that was skipped is not resumed', async () => {
    await keys.die('parked')
    await keys.skip('a')

    expect(await keys.resume('a')).toBeNull()
  })
}

function describeList({ bench, ...keys }: KeyBench): void {
  const page = async (given: Partial<KeyListQuery> = {}) =>
    bench.run(listKeys(bench.names, { queue: lane, state: null, limit: 10, after: null, ...given }))
  const retry = async (key: string, minutes: number): Promise<string> => {
    const id = await keys.publish({ key })
    const { seq } = (await keys.claim()).find((row) => row.id === id)!
    await bench.run(
      rescheduleRetried(bench.names, [{ seq, token, delayMs: minutes * minute, error: 'not yet' }], true),
    )
    return id
  }

  test('has the keys that are parked, by key, then those that are retried, by the time of that', async () => {
    const late = await retry('late', 9)
    const soon = await retry('soon', 3)
    await keys.publish({ key: 'soon' })
    const zoe = await keys.die('parked', { key: 'zoe' })
    const upper = await keys.die('parked', { key: 'Z' })
    await keys.publish({ key: 'zoe' })
    await keys.publish({ key: 'zoe' })

    const rows = await page()

    const { now } = await bench.store.snapshot()
    expect(rows.map(({ state, key, id, waiting }) => [state, key, id, waiting])).toEqual([
      ['parked', 'Z', upper, '0'],
      ['parked', 'zoe', zoe, '2'],
      ['retrying', 'soon', soon, '1'],
      ['retrying', 'late', late, '0'],
    ])
    expect(rows[1]).toMatchObject({ seq: '4', attempts: '1', reason: 'rejected', error: 'bad', due: null })
    expect(rows[2]).toMatchObject({ seq: '2', attempts: '1', reason: null, error: 'not yet' })
    const minutes = (time: string | null) => minutesBetween(now, time)
    expect([rows[1]!.since, rows[2]!.since, rows[2]!.due].map(minutes)).toEqual([0, 0, 3])
  })

  test('has either kind alone, and a snoozed one among those that are retried', async () => {
    await keys.die('parked', { key: 'p' })
    await retry('r', 3)
    await keys.publish({ key: 's' })
    const { seq } = (await keys.claim()).find(({ key }) => key === 's')!
    await bench.run(
      snoozeMessages(bench.names, [{ seq, token, delayMs: 5 * minute, deliveriesBefore: 0 }], true),
    )

    expect((await page({ state: 'parked' })).map(({ key }) => key)).toEqual(['p'])
    expect((await page({ state: 'retrying' })).map(({ key, since }) => [key, since === null])).toEqual([
      ['r', false],
      ['s', true],
    ])
  })

  test('goes on behind a key that is parked, behind one that is retried, and stops one above its limit', async () => {
    for (const key of ['a', 'b', 'c']) await keys.die('parked', { key })
    for (const [n, key] of ['x', 'y', 'z'].entries()) await retry(key, n + 1)
    const seen: (string | null)[][] = []
    let after: KeyListQuery['after'] = null
    for (;;) {
      const rows = await page({ limit: 2, after })
      seen.push(rows.map(({ key }) => key))
      const last = rows[1]
      if (rows.length < 3 || last === undefined) break
      after =
        last.state === 'parked'
          ? { state: 'parked', key: last.key! }
          : { state: 'retrying', dueMicros: last.micros!, seq: last.seq }
    }

    expect(seen).toEqual([
      ['a', 'b', 'c'],
      ['c', 'x', 'y'],
      ['y', 'z'],
    ])
  })

  test('leaves none out of those that are put off until the same time, wherever a page ends', async () => {
    for (const key of ['z', 'a', 'm']) await keys.publish({ key })
    const put = (await keys.claim()).map(({ seq }) => ({ seq, token, delayMs: minute, error: null }))
    await bench.run(rescheduleRetried(bench.names, put, true))

    const [first] = await page({ limit: 1 })
    const after = { state: 'retrying', dueMicros: first!.micros!, seq: first!.seq } as const
    const others = await page({ after })

    expect([first, ...others].map((row) => row!.key)).toEqual(['z', 'a', 'm'])
  })

  test('has nothing that is due, scheduled, without a key, skipped, or of another queue', async () => {
    await retry('now', 0)
    await keys.publish({ key: 'scheduled', ...inMinutes(5) })
    await keys.publish({ key: null, isOrdered: false, ...inMinutes(5) })
    await keys.publish({ key: 'fresh' })
    await keys.die('parked', { key: 'skipped' })
    await keys.skip('skipped')
    await bench.publish(draftOf({ key: 'other', ...inMinutes(5) }))

    expect(await page()).toEqual([])
    expect(await page({ queue: 'orders' })).toEqual([])
  })

  test('counts no more than a thousand that wait, and one', async () => {
    await keys.die('parked')
    for (let n = 0; n < 3; n++) await keys.publish()

    expect(await page()).toMatchObject([{ waiting: '3' }])
    expect(mostWaiting).toBe(1_000)
  })
}
