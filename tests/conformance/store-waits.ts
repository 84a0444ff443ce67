import { describe, expect, test } from 'vitest'
import { insertMessages } from '../../packages/postbox/src/sql/insert-messages.ts'
import { eachRow } from '../../packages/postbox/src/sql/insert-plain.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import { draftOf, stateOf } from '../support/settle-bench.ts'
import type { StoreTransaction } from '../support/stores.ts'
import { inMinutes, type StoreBench } from './store-bench.ts'

const daily = { timerId: 'daily' }
const replacing = { ...daily, conflict: 'replace', key: 'second' } as const
type Ending = 'commit' | 'rollback'

/** Who waits for an open transaction, and what he then finds. */
export function describeWaits(bench: StoreBench): void {
  type Write = (tx: StoreTransaction) => Promise<unknown>
  interface Race {
    readonly title: string
    readonly write: Write
    readonly ending: Ending
  }
  const arm: Write = (tx) => bench.publish({ ...daily, key: 'first' }, tx)
  const cancel: Write = (tx) => bench.cancel('daily', { on: tx })
  const claim: Write = (tx) => bench.claim({ on: tx })
  const replace: Write = (tx) => bench.publish({ ...daily, key: 'first', conflict: 'replace' }, tx)

  /** What a statement returns that is sent while the transaction is open, and has to wait. */
  async function waitingFor<T>(write: Write, ending: Ending, send: () => Promise<T>): Promise<T> {
    const tx = await bench.store.begin()
    await write(tx)
    const answer = send()
    answer.catch(() => {})
    await bench.store.untilWaiting()
    await tx[ending]()
    return answer
  }

  describe('arming a timer waits for a transaction that', () => {
    const waiting = { ...daily, key: 'waiting', ...inMinutes(5) }

    test.each<Race & { readonly before?: object; readonly expected: 'kept' | 'armed' }>([
      { title: 'arms it: committed, it is kept', write: arm, ending: 'commit', expected: 'kept' },
      { title: 'arms it: rolled back, it is armed', write: arm, ending: 'rollback', expected: 'armed' },
      {
        title: 'cancels it: committed, it is armed',
        write: cancel,
        ending: 'commit',
        expected: 'armed',
        before: waiting,
      },
      {
        title: 'cancels it: rolled back, it is kept',
        write: cancel,
        ending: 'rollback',
        expected: 'kept',
        before: waiting,
      },
      {
        title: 'replaces it: committed, it is kept',
        write: replace,
        ending: 'commit',
        expected: 'kept',
        before: waiting,
      },
      {
        title: 'claims it: committed, it is armed',
        write: claim,
        ending: 'commit',
        expected: 'armed',
        before: daily,
      },
      {
        title: 'claims it: rolled back, it is kept',
        write: claim,
        ending: 'rollback',
        expected: 'kept',
        before: daily,
      },
    ])('$title', async ({ write, ending, expected, before }) => {
      if (before !== undefined) await bench.publish(before)

      const published = await waitingFor(write, ending, () => bench.publish({ ...daily, key: 'second' }))

      expect(published === null ? 'kept' : 'armed').toBe(expected)
      const keys = (await bench.rows()).filter(({ timerId }) => timerId === 'daily').map(({ key }) => key)
      expect(keys).toHaveLength(1)
      if (expected === 'armed') expect(keys).toEqual(['second'])
    })

    test.each<readonly [string, Ending]>([
      ['committed', 'commit'],
      ['rolled back', 'rollback'],
    ])('arms it, to replace what it leaves: %s', async (_, ending) => {
      const published = await waitingFor(arm, ending, () => bench.publish(replacing))

      expect(published!.seq === '1').toBe(ending === 'commit')
      expect(await bench.rows()).toMatchObject([{ key: 'second', timerId: 'daily' }])
    })

    test('arms one of a batch: the whole batch is inserted afterwards', async () => {
      const drafts = [draftOf({ timerId: 'other' }), draftOf(daily), draftOf()]
      const batch = { queue: 'orders', drafts, conflict: 'keep' } as const
      const send = () => bench.run(insertMessages(bench.names, batch, { wake: 'always', mark: null }))

      expect(eachRow(await waitingFor(arm, 'commit', send), drafts)).toHaveLength(2)
      expect((await bench.rows()).map(({ timerId }) => timerId)).toEqual(['daily', 'other', null])
    })

    test('arms it, in a transaction of the waiter’s own, which keeps what it had', async () => {
      const own = await bench.store.begin()
      await bench.publish({ key: 'own' }, own)

      const published = await waitingFor(arm, 'commit', () => bench.publish({ ...daily, key: 'second' }, own))
      await own.commit()

      expect(published).toBeNull()
      expect((await bench.rows()).map(({ key }) => key).toSorted()).toEqual(['first', 'own'])
    })
  })

  test('the same name in another queue waits for nobody', async () => {
    const tx = await bench.store.begin()
    await arm(tx)

    expect(await bench.publish({ ...daily, queue: 'mails' })).not.toBeNull()
    await tx.rollback()
  })

  describe('cancelling a timer waits for a transaction that', () => {
    test.each<Race & { readonly isCancelled: boolean }>([
      { title: 'cancels it: committed, there is none', write: cancel, ending: 'commit', isCancelled: false },
      {
        title: 'cancels it: rolled back, it is cancelled',
        write: cancel,
        ending: 'rollback',
        isCancelled: true,
      },
      { title: 'claims it: committed, it is in flight', write: claim, ending: 'commit', isCancelled: false },
      {
        title: 'replaces it: committed, the new one is cancelled',
        write: replace,
        ending: 'commit',
        isCancelled: true,
      },
    ])('$title', async ({ write, ending, isCancelled }) => {
      await bench.publish(daily)

      expect(await waitingFor(write, ending, () => bench.cancel('daily'))).toBe(isCancelled)
      expect((await bench.rows()).filter(({ timerId }) => timerId === 'daily')).toEqual([])
    })
  })

  test('a timer that is not committed is not there to be cancelled: nobody waits for it', async () => {
    const tx = await bench.store.begin()
    await arm(tx)

    expect(await bench.cancel('daily')).toBe(false)
    await tx.commit()
    expect(await bench.rows()).toMatchObject([{ key: 'first' }])
  })

  test('of two transactions that wait for each other one fails, and the other goes on', async () => {
    const [a, b] = [await bench.store.begin(), await bench.store.begin()]
    await bench.publish({ timerId: 'a' }, a)
    await bench.publish({ timerId: 'b' }, b)
    const inA = bench.publish({ timerId: 'b', key: 'a' }, a).then(() => a)
    inA.catch(() => {})
    await bench.store.untilWaiting()
    const inB = bench.publish({ timerId: 'a', key: 'b' }, b).then(() => b)
    inB.catch(() => {})

    const lost = await Promise.any([
      stateOf(inA).then((state) => (state === '40P01' ? a : Promise.reject(new Error()))),
      stateOf(inB).then((state) => (state === '40P01' ? b : Promise.reject(new Error()))),
    ])
    await lost.rollback()
    const other = await (lost === a ? inB : inA)
    await other.commit()

    expect((await bench.rows()).map(({ timerId }) => timerId).toSorted()).toEqual(['a', 'b'])
  })

  const replaying = (id: string) => {
    const given = { id, by: 'me', generation: null, delayMs: 0, historyLimit: 20, wake: 'always' } as const
    return replayDeadLetter(bench.names, given)
  }

  describe.each(['moved', 'quarantined'] as const)('replaying a dead letter that is %s', (place) => {
    const replay = async (id: string): Promise<string> => (await bench.run(replaying(id)))[0]!.answer

    test.each<readonly [string, Ending]>([
      ['already_replayed', 'commit'],
      ['replayed', 'rollback'],
    ])('waits for who is doing the same: %s', async (answer, ending) => {
      const id = await bench.die({ key: 'k' }, { place })

      expect(
        await waitingFor(
          (tx) => tx.run(replaying(id)),
          ending,
          () => replay(id),
        ),
      ).toBe(answer)
      expect(await bench.rows()).toMatchObject([{ key: 'k', failedAt: null }])
      expect(await bench.dead()).toEqual([])
    })

    test('waits for who is about to arm its timer: rolled back, it is replayed', async () => {
      const id = await bench.die(daily, { place })

      expect(await waitingFor(arm, 'rollback', () => replay(id))).toBe('replayed')
      expect(await bench.rows()).toMatchObject([{ id, timerId: 'daily', failedAt: null }])
    })

    // In the quarantine the index finds it: the same statement, sent again, finds the timer.
    test('waits for who is about to arm its timer: committed, it stays where it is', async () => {
      const id = await bench.die(daily, { place })
      const answered = await waitingFor(arm, 'commit', () => replay(id)).catch((error) => error.code)

      expect(answered).toBe(place === 'moved' ? 'timer_conflict' : '23505')
      expect(await replay(id)).toBe('timer_conflict')
      expect([...(await bench.dead()), ...(await bench.rows())].filter((row) => row.id === id)).toMatchObject(
        [{ failureReason: 'rejected' }],
      )
    })
  })

  test.each<readonly [string, Ending]>([
    ['replayed', 'commit'],
    ['timer_conflict', 'rollback'],
  ])('replaying a dead letter that was moved waits for who cancels its timer: %s', async (answer, ending) => {
    const id = await bench.die(daily)
    await bench.publish({ ...daily, ...inMinutes(5) })

    expect(await waitingFor(cancel, ending, () => bench.run(replaying(id)))).toMatchObject([{ answer }])
  })

  test('replaying a dead letter in the quarantine does not wait for who cancels its timer: it is still there', async () => {
    const id = await bench.die(daily, { place: 'quarantined' })
    await bench.publish({ ...daily, ...inMinutes(5) })
    const tx = await bench.store.begin()
    await cancel(tx)

    expect(await bench.run(replaying(id))).toMatchObject([{ answer: 'timer_conflict' }])
    await tx.commit()
    expect(await bench.run(replaying(id))).toMatchObject([{ answer: 'replayed' }])
  })
}
