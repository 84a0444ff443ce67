import { expect, onTestFinished, test } from 'vitest'
import { assertSchema, migrate } from '../../packages/postbox/src/runtime/migrate.ts'
import { answers } from '../../packages/postbox/src/runtime/ping.ts'
import { deleteWithFollowOns } from '../../packages/postbox/src/sql/delete-with-follow-ons.ts'
import { insertMessages } from '../../packages/postbox/src/sql/insert-messages.ts'
import { readIsolation } from '../../packages/postbox/src/sql/isolation.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import { checkClear, getUp, lieDown, sendWord } from '../../packages/postbox/src/sql/sleep.ts'
import { draftOf } from '../support/settle-bench.ts'
import { collector } from '../support/signals.ts'
import { inMinutes, minute, type StoreBench } from './store-bench.ts'

const seconds = (count: number) => ({ schedule: { kind: 'after', delayMs: count * 1_000 } }) as const

export function describeWaking(bench: StoreBench): void {
  async function listen(channels: readonly string[] = [bench.names.channel, 'own']) {
    const heard = collector<string>('words')
    const own = bench.names.channel
    const listening = await bench.store.database.listen!(channels, {
      notified: (channel, payload) => heard.add(channel === own ? payload : `${channel}: ${payload}`),
      lost: () => heard.add('lost'),
    })
    onTestFinished(() => listening.end())
    return { heard, listening }
  }
  /** What was heard before this word: whatever was not by then is not announced. */
  async function before(heard: {
    readonly all: readonly string[]
    find(passes: (word: string) => boolean): Promise<string>
  }) {
    await bench.publish({ queue: 'the end' })
    await heard.find((word) => word === 'the end')
    return heard.all.filter((word) => word !== 'the end')
  }

  test('who listens is told of what is published, by its queue, and of a batch once', async () => {
    const { heard } = await listen()
    await bench.publish({ queue: 'orders' })
    await bench.publish({ queue: 'mails' })
    const batch = {
      queue: 'bills',
      drafts: [draftOf({ queue: 'bills' }), draftOf({ queue: 'bills' })],
      conflict: 'none',
    } as const
    await bench.run(insertMessages(bench.names, batch, { wake: 'always', mark: null }))

    expect(await before(heard)).toEqual(['orders', 'mails', 'bills'])
  })

  test('what is due within ten seconds is told of, and nothing that is due later', async () => {
    const { heard } = await listen()
    await bench.publish({ queue: 'soon', ...seconds(9) })
    await bench.publish({ queue: 'later', ...seconds(11) })

    expect(await before(heard)).toEqual(['soon'])
  })

  test('a timer that was kept is not told of, and one that was replaced is', async () => {
    await bench.publish({ queue: 'kept', timerId: 't' })
    await bench.publish({ queue: 'replaced', timerId: 't' })
    const { heard } = await listen()
    await bench.publish({ queue: 'kept', timerId: 't' })
    await bench.publish({ queue: 'replaced', timerId: 't', conflict: 'replace' })

    expect(await before(heard)).toEqual(['replaced'])
  })

  test('a transaction tells when it commits, of each queue once, and never when it rolls back', async () => {
    const { heard } = await listen()
    const lost = await bench.store.begin()
    await bench.publish({ queue: 'lost' }, lost)
    await lost.rollback()
    const tx = await bench.store.begin()
    for (const queue of ['a', 'b', 'a']) await bench.publish({ queue }, tx)
    const unheard = [...heard.all]
    await tx.commit()

    expect([unheard, (await before(heard)).toSorted()]).toEqual([[], ['a', 'b']])
  })

  test('what is given back is told of, by its queue', async () => {
    const fences = await bench.hold(2)
    const { heard } = await listen()
    await bench.run(releaseLeases(bench.names, fences, true))
    await bench.run(releaseLeases(bench.names, fences, true))

    expect(await before(heard)).toEqual(['orders'])
  })

  test('follow-ons are told of, each queue once, as far as they are due soon', async () => {
    const [fence] = await bench.hold()
    const { heard } = await listen()
    const followOns = ['a', 'b', 'a'].map((queue) => draftOf({ queue }))
    const settled = [{ ...fence!, followOns: [...followOns, draftOf({ queue: 'later', ...inMinutes(1) })] }]
    await bench.run(deleteWithFollowOns(bench.names, { settled, wake: 'always' }))

    expect((await before(heard)).toSorted()).toEqual(['a', 'b'])
  })

  test.each(['moved', 'quarantined'] as const)(
    'a dead letter that is replayed is told of, from where it was %s',
    async (place) => {
      const ids = [
        await bench.die({ queue: 'now' }, { place }),
        await bench.die({ queue: 'later' }, { place }),
      ]
      const { heard } = await listen()
      for (const [n, id] of ids.entries()) {
        const given = {
          id,
          by: 'me',
          generation: null,
          delayMs: n * minute,
          historyLimit: 20,
          wake: 'always',
        } as const
        await bench.run(replayDeadLetter(bench.names, given))
      }

      expect(await before(heard)).toEqual(['now'])
    },
  )

  test('a word goes to those who listen to its channel, and to no others', async () => {
    const { heard } = await listen()
    const { heard: others } = await listen([bench.names.channel, 'theirs'])

    expect(await bench.run(sendWord('own'))).toEqual([{ sent: 'sent' }])
    expect(await before(heard)).toEqual(['own: '])
    await others.find((word) => word === 'the end')
    expect(others.all).toEqual(['the end'])
  })

  test('who has ended his listening hears nothing more, and others still do', async () => {
    const first = await listen()
    const second = await listen()
    await first.listening.end()
    await bench.publish()

    expect(await before(second.heard)).toEqual(['orders'])
    expect(first.heard.all).toEqual([])
  })

  test('who listens can run statements: to lie down, to look whether all is clear, to get up', async () => {
    const { listening } = await listen()
    const queues = ['a', 'b']
    const clear = queues.map((queue) => ({ queue, clear: 'true' }))
    const inOrder = <Row extends { readonly queue: string }>(rows: readonly Row[]): readonly Row[] =>
      rows.toSorted((a, b) => (a.queue < b.queue ? -1 : 1))

    expect(inOrder(await listening.run(lieDown(bench.names, queues)))).toEqual(clear)
    expect(inOrder(await listening.run(checkClear(bench.names, queues)))).toEqual(clear)
    expect(inOrder(await listening.run(getUp(bench.names, queues)))).toMatchObject(
      queues.map((queue) => ({ queue })),
    )
  })

  test('it is read committed, it answers, and there is nothing left to migrate', async () => {
    const { database } = bench.store

    expect(await bench.run(readIsolation)).toEqual([{ isolation: 'read committed' }])
    expect(await answers(database, 10_000)).toBe(true)
    await migrate(database, bench.names)
    await assertSchema(database, bench.names)
    expect(await bench.publish()).toMatchObject({ seq: '1' })
  })
}
