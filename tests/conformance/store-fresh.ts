import { expect, test } from 'vitest'
import type { Executor } from '../../packages/postbox/src/adapters/executor.ts'
import { claimFresh, type FreshInput, type FreshRow } from '../../packages/postbox/src/sql/claim-fresh.ts'
import { pauseQueue } from '../../packages/postbox/src/sql/pause-queue.ts'
import { registerQueues } from '../../packages/postbox/src/sql/register-queues.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { draftOf, otherToken } from '../support/settle-bench.ts'
import { inMinutes, minute, minutesBetween, type StoreBench, seqsOf, token } from './store-bench.ts'

function freshOf(bench: StoreBench) {
  return (
    given: Partial<FreshInput> = {},
    on: Executor = bench.store.database,
  ): Promise<readonly FreshRow[]> => {
    const all = { token, queue: 'orders', room: 500, leaseMs: minute, after: '0' }
    return on.run(claimFresh(bench.names, { ...all, ...given }))
  }
}

/** The least claim: what is fresh in one queue, and nothing else. */
export function describeFresh(bench: StoreBench): void {
  const fresh = freshOf(bench)

  test('takes what nobody had yet: with its token, until the lease ends, as the first delivery', async () => {
    await bench.publish()

    expect(seqsOf(await fresh({ leaseMs: 3 * minute }))).toEqual(['1'])
    expect(await bench.rows()).toMatchObject([
      { leaseToken: token, leasedUntil: 3, deliveries: 1, attempts: 0 },
    ])
  })

  test('gives everything of a message, as text, with the time of the database', async () => {
    const body = Buffer.from([0, 255])
    const draft = draftOf({ key: 'k', timerId: 't', headers: { a: 'b' }, generation: 7, body })
    await bench.publish(draft)

    const [message] = await fresh()
    const { now } = await bench.store.snapshot()
    expect({ ...message, headers: JSON.parse(message!.headers!) as unknown }).toMatchObject({
      ...{ kind: 'message', queue: 'orders', id: draft.id, seq: '1', key: 'k', timer: 't' },
      ...{ body: body.toString('base64'), headers: { a: 'b' }, attempts: '0', deliveries: '1' },
      ...{ suspect: 'false', first: null, generation: '7', due: null },
    })
    expect([message!.created, message!.now].map((time) => minutesBetween(now, time))).toEqual([0, 0])
    expect(await bench.rows()).toMatchObject([{ timerId: null, firedTimerId: 't' }])
  })

  test('takes no more than there is room for, the oldest first, above the place that is given, of its queue', async () => {
    for (const queue of ['orders', 'mails', 'orders', 'orders', 'orders']) await bench.publish({ queue })

    const taken = []
    for (const room of [0, 2, 5]) taken.push(seqsOf(await fresh({ room, after: '1' })))
    expect(taken).toEqual([[], ['3', '4'], ['5']])
  })

  test('leaves what is due, whether its time has come or not', async () => {
    await bench.publish(inMinutes(1))
    await bench.publish(inMinutes(9))
    await bench.store.advance(2 * minute)

    expect(await fresh()).toEqual([])
  })

  test('leaves what is leased, and what was when its lease has ended: whether that is a suspect, the next claim tells', async () => {
    await bench.hold()

    expect(await fresh({ token: otherToken })).toEqual([])
    await bench.store.advance(5 * minute)
    expect(await fresh({ token: otherToken })).toEqual([])
    expect((await bench.claim({ token: otherToken })).messages).toMatchObject([{ suspect: 'true' }])
  })

  test('leaves a suspect that was given back: it has to be run alone', async () => {
    await bench.hold()
    await bench.store.advance(5 * minute)
    const { fences } = await bench.claim({ token: otherToken })
    await bench.run(releaseLeases(bench.names, fences, false))

    expect(await bench.rows()).toMatchObject([{ leaseToken: null, deliveries: 1, attempts: 0 }])
    expect(await fresh()).toEqual([])
  })

  test('takes what was given back, as a first delivery again', async () => {
    await bench.run(releaseLeases(bench.names, await bench.hold(), false))

    expect(await fresh()).toMatchObject([{ seq: '1', deliveries: '1' }])
  })

  test('leaves a message of a newer generation, where it has one', async () => {
    for (const generation of [null, 1, 2, 3]) await bench.publish({ generation })

    expect(seqsOf(await fresh({ generation: 2 }))).toEqual(['1', '2', '3'])
    expect(seqsOf(await fresh())).toEqual(['4'])
  })

  test('takes nothing of a queue that is paused, nor of one in the order of its keys', async () => {
    for (const queue of ['orders', 'mails', 'keyed']) await bench.publish({ queue })
    await bench.run(pauseQueue(bench.names, { queue: 'orders', by: 'jo', wake: 'poll' }))
    await bench.run(registerQueues(bench.names, { ordered: ['keyed'], others: [] }))

    const taken = []
    for (const queue of ['orders', 'mails', 'keyed']) taken.push(seqsOf(await fresh({ queue })))
    expect(taken).toEqual([[], ['2'], []])
  })
}

export function describeFreshSessions(bench: StoreBench): void {
  const fresh = freshOf(bench)

  test('the least claim steps over what another is claiming', async () => {
    await bench.publish()
    await bench.publish()
    const tx = await bench.store.begin()
    const theirs = seqsOf(await fresh({ room: 1 }, tx))

    const ours = seqsOf(await fresh({ token: otherToken }))

    await tx.commit()
    expect([theirs, ours]).toEqual([['1'], ['2']])
  })
}
