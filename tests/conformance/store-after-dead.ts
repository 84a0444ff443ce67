// What the next message of a key is told when the one before it dies and is skipped (docs/decisions/0037).
import { type Message, noRetry, type OutboxOptions } from 'postbox'
import { describe, expect, test } from 'vitest'
import { type Burial, buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { discardDead } from '../../packages/postbox/src/sql/discard-dead.ts'
import { parkDead, quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { collector } from '../support/signals.ts'
import { inMinutes, type StoreBench } from './store-bench.ts'
import { orderBench } from './store-order-bench.ts'
import { outboxBench } from './store-outbox-bench.ts'

const otherToken = '0190163d-8694-739b-9aea-966c26f8ad92'
const death = { reason: 'rejected', error: 'bad', attempts: 1 }
const noted = { ...death, isNoted: true }

/** Statement by statement: whatever buries, notes. */
export function describeNotes(bench: StoreBench): void {
  const order = orderBench(bench)
  const notes = async (): Promise<readonly unknown[]> =>
    (await bench.rows())
      .filter(({ failedAt }) => failedAt === null)
      .map(({ seq, afterDead }) => [seq, afterDead])
  /** Publishes for these keys, and claims the first of each. */
  const hold = async (keys: readonly string[]) => {
    const ids = (await order.publish(keys)).map(({ id }) => id)
    const { fences } = await order.claim({ room: new Set(keys).size })
    return { ids, fences }
  }

  describe.each([
    ['moved', buryDead],
    ['left where it lies', quarantineDead],
    ['deleted', discardDead],
  ])('a message that dies and is %s', (_, statement) => {
    const bury = (burials: readonly Burial[]) => bench.run(statement(bench.names, burials))

    test('is noted on the next of its key, by the statement that buries it, and on no other', async () => {
      const { ids, fences } = await hold(['a', 'b', 'a', 'a', 'b'])

      expect(await bury([{ ...fences[0]!, ...noted }])).toEqual([{ seq: '1' }])

      expect(await notes()).toEqual([
        ['2', null],
        ['3', ids[0]],
        ['4', null],
        ['5', null],
      ])
    })

    test('is noted in its own key, where several die by one statement', async () => {
      const { ids, fences } = await hold(['a', 'b', 'c', 'a', 'b', 'c'])
      const [a, b, c] = fences

      await bury([
        { ...a!, ...noted },
        { ...b!, ...death },
        { ...c!, ...noted },
      ])

      expect(await notes()).toEqual([
        ['4', ids[0]],
        ['5', null],
        ['6', ids[2]],
      ])
    })

    test('is not noted by who has lost its lease', async () => {
      const { fences } = await hold(['a', 'a'])

      expect(await bury([{ ...fences[0]!, ...noted, token: otherToken }])).toEqual([])

      expect(await notes()).toEqual([
        ['1', null],
        ['2', null],
      ])
    })

    test('is not noted on what is dead, comes later, has no key yet, or is of another key or queue', async () => {
      await bench.publish({ queue: 'mails', key: 'a' })
      await order.publish(['a', 'a'])
      const [first, second] = (await order.claim({ room: 2 })).fences
      await bench.run(quarantineDead(bench.names, [{ ...second!, ...death }]))
      await order.publish(['a'], inMinutes(5))
      await order.publish(['b'])

      await bury([{ ...first!, ...noted }])
      await order.publish(['a'])

      expect(await notes()).toEqual([
        ['1', null],
        ['4', null],
        ['5', null],
        ['6', null],
      ])
      expect((await bench.rows()).filter(({ afterDead }) => afterDead !== null)).toEqual([])
    })
  })

  test('a message that dies and holds its key is noted on nobody: the next has to wait for it', async () => {
    const { fences } = await hold(['a', 'a'])

    await bench.run(parkDead(bench.names, [{ ...fences[0]!, ...noted }]))

    expect(await notes()).toEqual([['2', null]])
  })
}

/** An outbox at work: however its dead letters are kept, whoever comes next is told. */
export function describeAfterDead(bench: StoreBench): void {
  const { open, inTransaction } = outboxBench(bench)
  const failing = (options: OutboxOptions, failingHead: 'skip' | 'park', bad: readonly string[]) => {
    const { outbox, of } = open({ ...options, queues: { orders: { order: 'key' } } })
    const got = collector<Message>('messages')
    const work = (message: Message): void => {
      got.add(message)
      if (bad.includes(String(message.body))) throw new Error('bad')
    }
    outbox.subscribe('orders', work, { failingHead, retry: noRetry() })
    /** By one commit, each to the key that it begins with. */
    const publish = (...bodies: readonly string[]) =>
      inTransaction((tx) => outbox.publishMany(tx, 'orders', bodies, (body) => ({ key: String(body)[0]! })))
    /** What was handled, and after whose death. */
    const told = (): Readonly<Record<string, unknown>> => {
      const bodies = new Map<string | null, unknown>(got.all.map(({ id, body }) => [id, body]))
      return Object.fromEntries(
        got.all.map(({ body, afterDead }) => [body, bodies.get(afterDead) ?? afterDead]),
      )
    }
    return { outbox, of, publish, told }
  }

  describe.each(['table', 'in-place', 'discard'] as const)('with dead letters: %s', (deadLetters) => {
    test('the next message of a key is told which one died before it and was skipped, and no other is', async () => {
      const { outbox, of, publish, told } = failing({ deadLetters }, 'skip', ['a1'])
      await publish('a1', 'b1', 'a2', 'a3')
      await outbox.start()
      await of('acked', 3)

      expect(told()).toEqual({ a1: null, a2: 'a1', a3: null, b1: null })
    })

    test('of several that died the next message is told of the last', async () => {
      const { outbox, of, publish, told } = failing({ deadLetters }, 'skip', ['a1', 'a2'])
      await publish('a1', 'a2', 'a3')
      await outbox.start()
      await of('acked')

      expect(told()).toEqual({ a1: null, a2: 'a1', a3: 'a2' })
    })

    test('a message that is published after the death is not told of it', async () => {
      const { outbox, of, publish, told } = failing({ deadLetters }, 'skip', ['a1'])
      await outbox.start()
      await publish('a1')
      await of('dead')
      await publish('a2')
      await of('acked')

      expect(told()).toEqual({ a1: null, a2: null })
    })

    test('a parked message that is skipped is told of as one that was never parked: to the next that waits by then', async () => {
      const { outbox, of, publish, told } = failing({ deadLetters }, 'park', ['a1', 'b1'])
      await outbox.start()
      await publish('a1', 'b1')
      await of('dead', 2)
      await publish('a2', 'a3')
      for (const key of ['a', 'b']) await outbox.keys.skip('orders', key, { by: 'ann' })
      await publish('b2')
      await of('acked', 3)

      expect(told()).toEqual({ a1: null, a2: 'a1', a3: null, b1: null, b2: null })
    })
  })
}
