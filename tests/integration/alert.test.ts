// An alert for each message that is given up: one `dead`, after the write, whatever became of the answer.
import { noRetry, type OutboxOptions, TerminalError } from 'postbox'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../packages/postbox/src/runtime/clock.ts'
import type { FailpointName } from '../../packages/postbox/src/runtime/failpoint.ts'
import { useBench } from '../support/decisions-bench.ts'

const bench = useBench()
const { database, outboxOf, messages, dead } = bench

const hasty = {
  ...systemClock,
  sleep: (ms: number, signal: AbortSignal) => systemClock.sleep(Math.min(ms, 20), signal),
}
const inside = (internals: object): OutboxOptions => ({ [Symbol.for('postbox.internals')]: internals })

/** Loses the answers of so many flushes: the write has landed, and nobody knows. */
function losing(count: number) {
  let left = count
  return {
    async reach(name: FailpointName): Promise<void> {
      if (name === 'after_flush' && left-- > 0)
        throw Object.assign(new Error('connection lost'), { code: '08006' })
    },
  }
}

/** Fails before it is sent, as often. */
function failing(count: number) {
  let left = count
  return {
    async reach(name: FailpointName): Promise<void> {
      if (name === 'before_flush' && left-- > 0)
        throw Object.assign(new Error('no connection'), { code: '08001' })
    },
  }
}

/** What lies in either place when the event comes: by then it is written. */
const stored = async (): Promise<number> =>
  (await dead()).length + (await messages()).filter(({ failed_at }) => failed_at !== null).length

const endings = [
  ['terminal_error', () => Promise.reject(new TerminalError('no')), {}],
  ['retry_terminal', () => Promise.reject(new Error('no')), { retry: noRetry() }],
  ['rejected', (_: unknown, context: { reject(reason: string): void }) => context.reject('no'), {}],
] as const

describe.each(['table', 'discard'] as const)('with dead letters %s', (deadLetters) => {
  test.each(endings)(
    'a message that ends as %s is told once, with its target',
    async (reason, handler, options) => {
      const outbox = outboxOf({ deadLetters, source: 'shop' })
      outbox.subscribe('orders', handler as never, { name: 'ship', ...options })
      const headers = { type: 'order.placed', target: 'warehouse' }
      const { id } = await outbox.publishNow('orders', 1, { headers })
      const plain = await outbox.publishNow('orders', 2)

      expect(await outbox.drain()).toMatchObject({ dead: 2 })

      const alert = { reason, source: 'shop', handler: 'ship', queue: 'orders', attempts: 1 }
      expect(outbox.told.of('dead')).toMatchObject([
        { ...alert, id, type: 'order.placed', target: 'warehouse' },
        { ...alert, id: plain.id, type: null, target: 'orders' },
      ])
    },
  )

  test('a flush that fails before it is sent is told once, when it is written', async () => {
    const outbox = outboxOf({ deadLetters, ...inside({ clock: hasty, failpoint: failing(3) }) })
    outbox.subscribe('orders', (_, { reject }) => reject('no'))
    await outbox.publishNow('orders', 1)
    await using running = await outbox.start()
    await outbox.told.first('dead')
    await running.stop()

    expect(outbox.told.of('settle_failed')).toHaveLength(3)
    expect(outbox.told.of('dead')).toHaveLength(1)
    expect(await messages()).toEqual([])
  })
})

test.each([1, 3])('a burial whose answer is lost %i times is told once', async (count) => {
  const outbox = outboxOf(inside({ clock: hasty, failpoint: losing(count) }))
  outbox.subscribe('orders', (_, { reject }) => reject('no'))
  await outbox.publishNow('orders', 1)
  await using running = await outbox.start()
  await outbox.told.first('dead')
  await running.stop()

  expect([await stored(), outbox.told.of('dead').length, outbox.told.of('lease_lost')]).toEqual([1, 1, []])
})

test.each([0, 1, 3])('a quarantine whose answer is lost %i times is told once', async (count) => {
  const outbox = outboxOf(inside({ clock: hasty, failpoint: losing(count) }))
  outbox.subscribe('orders', (_, { reject }) => reject('no'))
  await outbox.publishNow('orders', 1)
  await database.query('alter table outbox_dead rename to outbox_gone')
  try {
    await using running = await outbox.start()
    await outbox.told.first('dead')
    await running.stop()
  } finally {
    await database.query('alter table outbox_gone rename to outbox_dead')
  }

  expect(outbox.told.of('dead')).toMatchObject([{ reason: 'rejected', target: 'orders' }])
  expect(outbox.told.of('dlq_written')).toMatchObject([{ isQuarantined: true }])
  expect([await stored(), outbox.told.of('lease_lost')]).toEqual([1, []])
})

test('a discard whose answer is lost is never told twice: what is deleted cannot be looked at, and may have landed', async () => {
  const outbox = outboxOf({ deadLetters: 'discard', ...inside({ clock: hasty, failpoint: losing(1) }) })
  outbox.subscribe('orders', (_, { reject }) => reject('no'))
  await outbox.publishNow('orders', 1)
  await using running = await outbox.start()
  await outbox.told.first('lease_lost')
  await running.stop()

  expect(outbox.told.of('dead')).toEqual([])
  expect(outbox.told.of('lease_lost')).toMatchObject([{ phase: 'terminal', mayHaveLanded: true }])
  expect(await messages()).toEqual([])
})
