import { expect, onTestFinished, test } from 'vitest'
import type { Executor } from '../../packages/postbox/src/adapters/executor.ts'
import { claimMessages } from '../../packages/postbox/src/sql/claim-messages.ts'
import { countMessages } from '../../packages/postbox/src/sql/count-messages.ts'
import { pauseQueue, resumeQueue } from '../../packages/postbox/src/sql/pause-queue.ts'
import { type Pause, pauseFrom } from '../../packages/postbox/src/sql/pause-state.ts'
import { readPauses } from '../../packages/postbox/src/sql/read-pauses.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { collector, signal } from '../support/signals.ts'
import { inMinutes, minute, minutesBetween, type StoreBench, token, wanted } from './store-bench.ts'
import { hour, outboxBench } from './store-outbox-bench.ts'

const by = 'jo'

function pausingOf(bench: StoreBench) {
  const on = (given?: Executor): Executor => given ?? bench.store.database
  const input = (who: string, queue: string) => ({ queue, by: who, wake: 'always' }) as const
  return {
    pause: (who = by, given?: Executor, queue = 'orders') =>
      on(given).run(pauseQueue(bench.names, input(who, queue))),
    resume: (who = by, given?: Executor, queue = 'orders') =>
      on(given).run(resumeQueue(bench.names, input(who, queue))),
    async read(queue = 'orders', given?: Executor): Promise<Pause | null> {
      const [row] = await on(given).run(readPauses(bench.names, [queue]))
      return pauseFrom(row!.pause)
    },
  }
}

export function describePausing(bench: StoreBench): void {
  const { pause, resume, read } = pausingOf(bench)
  const done = [expect.objectContaining({ queue: 'orders' })]

  test('who comes first is recorded, with the time, and who comes second changes nothing', async () => {
    expect(await read()).toBeNull()
    expect(await pause('jo')).toEqual(done)
    expect(await pause('ann')).toEqual([])

    const state = await read()
    expect(state).toMatchObject({ isPaused: true, by: 'jo' })
    const { now } = await bench.store.snapshot()
    expect(minutesBetween(now, state!.at.getTime())).toBe(0)
  })

  test('who resumes is recorded, and one that is not paused cannot be resumed', async () => {
    expect(await resume('jo')).toEqual([])
    expect(await read()).toBeNull()
    await pause('jo')
    expect(await resume('ann')).toEqual(done)
    expect(await resume('ben')).toEqual([])

    const state = await read()
    expect(state).toMatchObject({ isPaused: false, by: 'ann' })
    const { now } = await bench.store.snapshot()
    expect(minutesBetween(now, state!.at.getTime())).toBe(0)
  })

  test('a queue that was resumed can be paused again, by somebody else', async () => {
    await pause('jo')
    await resume('ann')
    expect(await pause('ben')).toEqual(done)
    expect(await read()).toMatchObject({ isPaused: true, by: 'ben' })
  })

  test('each queue is paused by itself, and each that is asked for is answered', async () => {
    await pause('jo', undefined, `'"\\ä`)
    await pause('jo', undefined, 'bills')
    await resume('ann', undefined, 'bills')

    const rows = await bench.run(readPauses(bench.names, ['orders', `'"\\ä`, 'bills']))
    const states = new Map(rows.map(({ queue, pause }) => [queue, pauseFrom(pause)?.isPaused ?? null]))
    expect(Object.fromEntries(states)).toEqual({ orders: null, [`'"\\ä`]: true, bills: false })
    expect(await bench.run(readPauses(bench.names, []))).toEqual([])
  })

  test('a claim takes nothing of a paused queue, in either lane, whatever its lease was, and says so', async () => {
    await bench.hold()
    await bench.publish(inMinutes(1))
    await bench.publish(inMinutes(9))
    await bench.store.advance(2 * minute)
    await bench.publish()
    await pause()

    const { seqs, queue } = await bench.claim()

    expect(seqs).toEqual([])
    expect(queue).toMatchObject({ nextdue: null, lowest: '1' })
    expect(pauseFrom(queue.pause)).toMatchObject({ isPaused: true, by })
    expect((await bench.rows()).map(({ deliveries }) => deliveries)).toEqual([1, 0, 0, 0])
  })

  test('after it is resumed a claim takes all of it, and tells the next due time', async () => {
    await bench.publish()
    await bench.publish(inMinutes(1))
    await bench.publish(inMinutes(9))
    await pause()
    await bench.store.advance(2 * minute)
    await bench.claim()
    await resume('ann')

    const { seqs, queue } = await bench.claim()

    expect(seqs).toEqual(['1', '2'])
    expect(minutesBetween(0, queue.nextdue)).toBe(7)
    expect(pauseFrom(queue.pause)).toMatchObject({ isPaused: false, by: 'ann' })
  })

  test('a claim of several queues goes on with those that are not paused', async () => {
    for (const queue of ['orders', 'mails', 'orders', 'mails']) await bench.publish({ queue })
    await pause()

    const queues = [wanted(), wanted({ queue: 'mails' })]

    const rows = await bench.run(claimMessages(bench.names, { token, queues }))

    expect(rows.filter(({ kind }) => kind === 'message').map(({ queue }) => queue)).toEqual([
      'mails',
      'mails',
    ])
    const told = rows.filter((row) => row.kind === 'queue').map(({ queue, pause }) => [queue, pause !== null])
    expect(Object.fromEntries(told)).toEqual({ orders: true, mails: false })
  })

  test('a claim of a generation takes nothing of it either', async () => {
    await bench.publish(inMinutes(1))
    await pause()
    expect(await bench.claim({ generation: 1 })).toMatchObject({ seqs: [], queue: { nextdue: null } })
  })

  test('what was claimed before can be given back and settled: a pause is for claims alone', async () => {
    const fences = await bench.hold(2)
    await pause()
    await bench.run(releaseLeases(bench.names, fences, true))
    expect((await bench.rows()).map(({ deliveries }) => deliveries)).toEqual([0, 0])
  })

  test('it is counted with the queue', async () => {
    await bench.publish()
    await pause()
    const rows = await bench.run(countMessages(bench.names, ['mails', 'orders'], 10))
    expect(rows).toMatchObject([
      { queue: 'mails', pause: null },
      { queue: 'orders', ready: '1' },
    ])
    expect(pauseFrom(rows[1]!.pause)).toMatchObject({ isPaused: true, by })
  })

  test('who listens is told of a change by a word without a queue, when it commits, and never where nothing changed', async () => {
    const heard = collector<string>('words')
    const listening = await bench.store.database.listen!([bench.names.channel], {
      notified: (_, payload) => heard.add(payload),
      lost: () => heard.add('lost'),
    })
    onTestFinished(() => listening.end())
    await resume()
    await pause()
    await heard.take(1)
    await pause()
    await resume()
    await heard.take(2)
    await bench.run(pauseQueue(bench.names, { queue: 'orders', by, wake: 'poll' }))
    await bench.publish({ queue: 'the end' })
    await heard.find((word) => word === 'the end')

    expect(heard.all).toEqual(['', '', 'the end'])
  })

  test('a transaction that rolls back has paused nothing', async () => {
    await bench.publish()
    const tx = await bench.store.begin()
    await pause('jo', tx)
    expect(await read('orders', tx)).toMatchObject({ isPaused: true })
    await tx.rollback()

    expect(await read()).toBeNull()
    expect((await bench.claim()).seqs).toEqual(['1'])
  })
}

/** Of two who pause or resume at once. */
export function describePausingWaits(bench: StoreBench): void {
  const { pause, resume, read } = pausingOf(bench)

  test.each(['commit', 'rollback'] as const)(
    'who pauses waits for the %s of who did before',
    async (ending) => {
      const tx = await bench.store.begin()
      await pause('jo', tx)
      const second = pause('ann')
      await bench.store.untilWaiting()
      await tx[ending]()

      expect(await second).toHaveLength(ending === 'commit' ? 0 : 1)
      expect(await read()).toMatchObject({ by: ending === 'commit' ? 'jo' : 'ann' })
    },
  )

  test.each(['commit', 'rollback'] as const)(
    'who resumes waits for the %s of who did before',
    async (ending) => {
      await pause()
      const tx = await bench.store.begin()
      await resume('ann', tx)
      const second = resume('ben')
      await bench.store.untilWaiting()
      await tx[ending]()

      expect(await second).toHaveLength(ending === 'commit' ? 0 : 1)
      expect(await read()).toMatchObject({ isPaused: false, by: ending === 'commit' ? 'ann' : 'ben' })
    },
  )

  test('a claim does not wait for who pauses, and takes what it may until that is committed', async () => {
    await bench.publish()
    await bench.publish()
    const tx = await bench.store.begin()
    await pause('jo', tx)
    const during = await bench.claim({ room: 1 })
    await tx.commit()

    expect([during.seqs, (await bench.claim()).seqs]).toEqual([['1'], []])
  })

  test('who finds it paused keeps others from resuming it until he has read by whom', async () => {
    await pause('jo')
    const tx = await bench.store.begin()
    expect(await pause('ann', tx)).toEqual([])
    const resuming = resume('ben')
    await bench.store.untilWaiting()
    expect(await read('orders', tx)).toMatchObject({ isPaused: true, by: 'jo' })
    await tx.commit()

    expect(await resuming).toHaveLength(1)
  })
}

/** What an outbox does on every store. */
export function describePauses(bench: StoreBench): void {
  const { open } = outboxBench(bench)

  test('an outbox that was never started pauses and resumes, and says who came first', async () => {
    const { outbox } = open({ queues: { orders: {} } } as object)

    expect(await outbox.pause('orders', { by: 'jo' })).toEqual({ paused: true })
    const second = await outbox.pause('orders', { by: 'ann' })
    expect(second).toEqual({ paused: false, because: 'already_paused', by: 'jo', at: expect.any(Date) })
    expect(await outbox.stats()).toMatchObject({ orders: { paused: { by: 'jo', at: expect.any(Date) } } })
    expect(await outbox.resume('orders', { by: 'ann' })).toEqual({ resumed: true })
    const again = await outbox.resume('orders', { by: 'ben' })
    expect(again).toEqual({ resumed: false, because: 'not_paused', by: 'ann', at: expect.any(Date) })
    expect(await outbox.stats()).toMatchObject({ orders: { paused: null } })
  })

  test('one that nobody has ever paused was resumed by nobody', async () => {
    const { outbox } = open()
    const never = { resumed: false, because: 'not_paused', by: null, at: null }
    expect(await outbox.resume('orders', { by: 'jo' })).toEqual(never)
  })

  test('nothing of a paused queue is delivered until it is resumed, then everything, once', async () => {
    const { outbox, of, kinds } = open()
    const got = collector<unknown>('bodies')
    outbox.subscribe(['orders', 'mails'], ({ queue, body }) => got.add(`${queue} ${body}`))
    await outbox.publishNow('orders', 'timer', { timerId: 't', delayMs: hour })
    await outbox.start()
    await outbox.pause('orders', { by })
    await of('queue_paused')

    await outbox.publishNow('orders', 'fresh')
    await outbox.publishNow('mails', 1)
    // Its lease would end, too.
    await of('acked')
    await bench.store.advance(2 * hour)
    await outbox.publishNow('mails', 2)
    await of('acked', 2)
    const before = got.all.toSorted()
    await outbox.resume('orders', { by })
    await of('acked', 4)

    expect(before).toEqual(['mails 1', 'mails 2'])
    expect(got.all.slice(2).toSorted()).toEqual(['orders fresh', 'orders timer'])
    expect(kinds().filter((kind) => kind.startsWith('queue_'))).toEqual(['queue_paused', 'queue_resumed'])
    expect(outbox.health().ok).toBe(true)
    expect(await bench.rows()).toEqual([])
  })

  test('what was claimed and not started is given back, not counted, and what runs is finished', async () => {
    const { outbox, of } = open()
    const gate = signal('the gate')
    const got = collector<unknown>('bodies')
    outbox.subscribe(
      'orders',
      async ({ body }) => {
        got.add(body)
        if (body === 1) await gate.wait()
      },
      { concurrency: 1, prefetch: 5 },
    )
    for (const body of [1, 2, 3]) await outbox.publishNow('orders', body)
    await outbox.start()
    await got.take(1)
    await outbox.pause('orders', { by })
    await of('released', 2)

    const rows = await bench.rows()
    expect(rows.map(({ leaseToken, deliveries }) => [leaseToken !== null, deliveries])).toEqual([
      [true, 1],
      [false, 0],
      [false, 0],
    ])
    gate.send()
    await of('acked')
    expect(got.all).toEqual([1])
    await outbox.resume('orders', { by })
    await of('acked', 3)
    expect(got.all.toSorted()).toEqual([1, 2, 3])
  })

  test('drain ends though a paused queue has messages, and leaves them there', async () => {
    const { outbox } = open()
    outbox.subscribe(['orders', 'mails'], () => {})
    for (const queue of ['orders', 'mails']) await outbox.publishNow(queue, 1)
    await outbox.pause('orders', { by })

    expect(await outbox.drain()).toMatchObject({ acked: 1, isEmpty: true })
    expect(await bench.rows()).toMatchObject([{ queue: 'orders', deliveries: 0 }])
  })
}
