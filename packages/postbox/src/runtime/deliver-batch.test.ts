import { describe, expect, test } from 'vitest'
import { batch, deliveryOf, leaseOf, leasesUpTo } from '../../../../tests/support/delivery-bench.ts'
import type { BatchContext } from '../core/handler.ts'
import type { Message } from '../core/message.ts'
import type { Outcome } from '../core/outcome.ts'
import { runtimeError } from '../core/runtime-errors.ts'

/** Resolves when everything that could run without waiting has run. */
const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const bad = new Error('bad')
const ack: Outcome = { kind: 'ack', followOns: [] }
const together: Outcome = { kind: 'fail', error: bad, isShared: true }
const alone: Outcome = { kind: 'fail', error: bad, isShared: false }
const snooze: Outcome = { kind: 'snooze', delayMs: 5 }

const broken = (seq: string) => leaseOf({ seq, body: Buffer.from('{') })
const invalid = { kind: 'invalid', error: expect.objectContaining({ code: 'OUTBOX_INVALID_BODY' }) }

describe('a batch', () => {
  test('is one run of the handler, with all messages in their order', async () => {
    const runs: (readonly Message[])[] = []
    const { all } = deliveryOf(batch((messages) => runs.push(messages)))
    const outcomes = await all(leasesUpTo(3))

    expect(runs.map((messages) => messages.map(({ body }) => body))).toEqual([[{ n: 1 }, { n: 2 }, { n: 3 }]])
    expect(outcomes).toEqual([ack, ack, ack])
  })

  test('those that are not decided fail together when the handler throws; the others keep their decision', async () => {
    const { all, told } = deliveryOf(
      batch((messages, context) => {
        context.snooze(messages[1]!, 5)
        context.ack(messages[3]!)
        throw bad
      }),
    )

    expect(await all(leasesUpTo(4))).toEqual([together, snooze, together, ack])
    const warnings = [expect.stringContaining('snooze stands'), expect.stringContaining('ack stands')]
    expect(told).toEqual(
      ['2', '4'].map((seq, at) => ({
        kind: 'warning',
        code: 'thrown_after_decision',
        message: warnings[at],
        fields: { queue: 'orders', id: `id-${seq}`, seq, attempt: 1, deliveries: 1 },
        error: bad,
      })),
    )
  })

  test('those that are not decided are acknowledged when the handler returns; the others keep their decision', async () => {
    const { all } = deliveryOf(batch((messages, context) => context.snooze(messages[1]!, 5)))

    expect(await all(leasesUpTo(3))).toEqual([ack, snooze, ack])
  })

  test("ack: 'manual' rejects those that are not decided, and fails them when the handler throws", async () => {
    const decideFirst = (messages: readonly Message[], context: BatchContext) => context.ack(messages[0]!)
    const returning = deliveryOf(batch(decideFirst), { ack: 'manual' })
    const throwing = deliveryOf(
      batch((messages, context) => {
        decideFirst(messages, context)
        throw bad
      }),
      { ack: 'manual' },
    )

    expect((await returning.all(leasesUpTo(2))).map(({ kind }) => kind)).toEqual(['ack', 'reject'])
    expect(await throwing.all(leasesUpTo(2))).toEqual([ack, together])
  })

  test("ack: 'reject-on-error' rejects the one that is alone; of several, nobody knows which to reject", async () => {
    const { all, one } = deliveryOf(
      batch(() => Promise.reject(bad)),
      { ack: 'reject-on-error' },
    )

    expect([await one(), await all(leasesUpTo(2))]).toEqual([
      { kind: 'reject', error: bad, isSaid: false },
      [together, together],
    ])
  })

  test('a message that is alone in its batch fails by itself', async () => {
    const { one } = deliveryOf(batch(() => Promise.reject(bad)))

    expect(await one()).toEqual(alone)
  })

  test('messages that cannot be read do not reach the handler, and spoil nothing for the others', async () => {
    const runs: string[][] = []
    const { all } = deliveryOf(
      batch((messages, context) => {
        runs.push(messages.map(({ seq }) => seq))
        context.snooze(messages[1]!, 5)
      }),
    )
    const outcomes = await all([broken('1'), leaseOf({ seq: '2' }), broken('3'), leaseOf({ seq: '4' })])

    expect([runs, outcomes]).toEqual([[['2', '4']], [invalid, ack, invalid, snooze]])
  })

  test('the only one that can be read is alone: what it fails at is its own fault', async () => {
    const { all } = deliveryOf(batch(() => Promise.reject(bad)))

    expect(await all([broken('1'), leaseOf({ seq: '2' })])).toEqual([invalid, alone])
  })

  test('the handler is not run when none can be read', async () => {
    let runs = 0
    const { all } = deliveryOf(batch(() => runs++))

    expect([await all([broken('1'), broken('2')]), runs]).toEqual([[invalid, invalid], 0])
  })

  test('its messages are a list that nobody can change: what was taken out would be acknowledged unseen', async () => {
    const { all } = deliveryOf(batch((messages) => void (messages as Message[]).pop()))

    expect(await all(leasesUpTo(2))).toEqual(
      Array(2).fill({ kind: 'fail', error: expect.any(TypeError), isShared: true }),
    )
  })

  test('a function that is returned fails those that are not decided, together', async () => {
    const { all } = deliveryOf(
      batch((messages, context) => {
        context.ack(messages[0]!)
        return context.retry
      }),
    )

    expect(await all(leasesUpTo(3))).toEqual([
      ack,
      ...Array(2).fill({
        kind: 'fail',
        error: expect.objectContaining({ code: 'OUTBOX_INVALID_OUTCOME' }),
        isShared: true,
      }),
    ])
  })

  test('a decision about a message of another batch fails the handler that does not catch it', async () => {
    const { all } = deliveryOf(batch((messages, context) => context.ack({ ...messages[0]! })))

    expect(await all(leasesUpTo(2))).toMatchObject(
      Array(2).fill({ kind: 'fail', error: { code: 'OUTBOX_INVALID_OPTION' }, isShared: true }),
    )
  })

  test('a stop interrupts those that are not decided', async () => {
    const { all, controller } = deliveryOf(
      batch((messages, context) => {
        context.snooze(messages[0]!, 5)
        return new Promise((_, refuse) => context.signal.addEventListener('abort', refuse, { once: true }))
      }),
    )
    const delivered = all(leasesUpTo(2))
    await idle()
    controller.abort(runtimeError('OUTBOX_STOPPING', 'the outbox stops'))

    expect(await delivered).toEqual([snooze, { kind: 'interrupt' }])
  })

  test('out of time, those that are not decided fail together, and what comes later counts for none', async () => {
    let late = (): Promise<unknown> => Promise.resolve()
    const { all, clock } = deliveryOf(
      batch((messages, context) => {
        context.ack(messages[0]!)
        late = () =>
          Promise.allSettled(
            messages.map((message) => {
              context.snooze(message, 5)
              return context.publish(message, { queue: 'mails', body: 1 })
            }),
          )
        return new Promise(() => {})
      }),
      { timeoutMs: 300 },
    )
    const delivered = all(leasesUpTo(3))
    await idle()
    clock.advance(300)
    const outcomes = await delivered

    const error = expect.objectContaining({ code: 'OUTBOX_HANDLER_TIMEOUT' })
    expect(outcomes).toEqual([ack, ...Array(2).fill({ kind: 'fail', error, isShared: true })])
    const reason = expect.objectContaining({ code: 'OUTBOX_DELIVERY_OVER' })
    await expect(late()).resolves.toEqual(Array(3).fill({ status: 'rejected', reason }))
  })
})

test('those whose leases have ended by the time that the handler is called are given back, and the others handled', async () => {
  const handled: string[] = []
  const { all, clock } = deliveryOf(batch((messages) => void handled.push(...messages.map(({ seq }) => seq))))
  const helds = leasesUpTo(3)
  const [ended, lost] = helds
  const outcomes = all(helds)
  // As if the process had been stopped here: all of them were good when they were started.
  clock.advance(1_000)
  Object.assign(ended!, { deadline: 1_000 })
  Object.assign(lost!, { isLost: true })

  expect(await outcomes).toEqual([{ kind: 'interrupt' }, { kind: 'interrupt' }, ack])
  expect(handled).toEqual(['3'])
})
