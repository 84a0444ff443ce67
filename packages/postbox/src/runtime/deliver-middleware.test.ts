import { describe, expect, test } from 'vitest'
import {
  batch,
  deliveryOf,
  each,
  leaseOf,
  leasesUpTo,
  unhandledWhile,
} from '../../../../tests/support/delivery-bench.ts'
import type { DeliveryContext } from '../core/handler.ts'
import type { Message } from '../core/message.ts'
import type { Delivery, Middleware } from '../core/middleware.ts'
import type { Outcome } from '../core/outcome.ts'
import { runtimeError } from '../core/runtime-errors.ts'

const bad = new Error('bad')
const ack: Outcome = { kind: 'ack', followOns: [] }

describe('the middleware of a delivery', () => {
  /** Notes when it is entered and left. */
  const noting = (name: string, notes: string[]): Middleware => ({
    async consume(_, next) {
      notes.push(`${name} in`)
      await next()
      notes.push(`${name} out`)
    },
  })

  test('lies around the handler like the skins of an onion, the first outermost', async () => {
    const notes: string[] = []
    const middleware = [noting('a', notes), {}, noting('b', notes)]
    const { one } = deliveryOf(
      each(() => notes.push('handler')),
      {},
      { middleware },
    )

    expect([await one(), notes]).toEqual([ack, ['a in', 'b in', 'handler', 'b out', 'a out']])
  })

  test.each([
    ['one message', each],
    ['a batch', batch],
  ])('what it puts into the context is what the handler of %s gets', async (_, run) => {
    const [log, lease, { signal }] = [{ info: () => {} }, { extend: async () => {} }, new AbortController()]
    const seen: unknown[] = []
    const consume: Middleware['consume'] = ({ context }, next) => {
      Object.assign(context, { signal, log, lease })
      return next()
    }
    const { one } = deliveryOf(
      run(
        (_message: unknown, context: DeliveryContext) =>
          void seen.push(context.signal, context.log, context.lease),
      ),
      {},
      { middleware: [{ consume }] },
    )
    await one()

    expect(seen).toEqual([signal, log, lease])
    expect(seen[0]).toBe(signal)
  })

  test('hears of the handler, the queue, the messages and what is common of the context', async () => {
    const heard: Delivery[] = []
    const consume: Middleware['consume'] = (delivery, next) => {
      heard.push(delivery)
      return next()
    }
    const { one, all, controller } = deliveryOf(
      batch(() => {}),
      {},
      { middleware: [{ consume }] },
    )
    await all(leasesUpTo(2))
    await one(leaseOf({ seq: '3', queue: 'returns' }))

    expect(
      heard.map(({ handler, queue, messages }) => [handler, queue, messages.map(({ seq }) => seq)]),
    ).toEqual([
      ['ship', 'orders', ['1', '2']],
      ['ship', 'returns', ['3']],
    ])
    expect(heard.map(({ context }) => context.signal)).toEqual([controller.signal, controller.signal])
  })

  test.each<[string, Middleware['consume']]>([
    ['before the handler', () => Promise.reject(bad)],
    [
      'at once',
      () => {
        throw bad
      },
    ],
    [
      'after the handler',
      async (_, next) => {
        await next()
        throw bad
      },
    ],
  ])('what it throws %s fails the delivery', async (_, consume) => {
    const { one } = deliveryOf(
      each(() => {}),
      {},
      { middleware: [{ consume: consume! }] },
    )

    await expect(one()).resolves.toEqual({ kind: 'fail', error: bad, isShared: false })
  })

  test.each(['auto', 'reject-on-error', 'manual'] as const)(
    'ack: %s, one that answers without next acknowledges, and the handler is not run',
    async (mode) => {
      let runs = 0
      const { one } = deliveryOf(
        each(() => runs++),
        { ack: mode },
        { middleware: [{ consume: () => 'done' }] },
      )

      expect([await one(), runs]).toEqual([ack, 0])
    },
  )

  test('next called twice fails the delivery, and the handler is run once', async () => {
    let runs = 0
    const consume: Middleware['consume'] = async (_, next) => {
      await next()
      await next()
    }
    const { one } = deliveryOf(
      each(() => runs++),
      {},
      { middleware: [{ consume }] },
    )

    expect([await one(), runs]).toEqual([
      { kind: 'fail', error: expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' }), isShared: false },
      1,
    ])
  })

  test("ack: 'manual', one that answers for a batch acknowledges all of it", async () => {
    const { all } = deliveryOf(
      batch(() => {}),
      { ack: 'manual' },
      { middleware: [{ consume: () => {} }] },
    )

    expect(await all(leasesUpTo(2))).toEqual([ack, ack])
  })

  test("ack: 'manual', one that lets it through does not decide for the handler", async () => {
    const { one } = deliveryOf(
      each(() => {}),
      { ack: 'manual' },
      { middleware: [{ consume: (_, next) => next() }] },
    )

    await expect(one()).resolves.toMatchObject({ kind: 'reject', isSaid: true })
  })

  // A forgotten `await` would acknowledge what failed.
  test('one that does not wait for the handler does not acknowledge what it throws', async () => {
    const consume: Middleware['consume'] = (_, next) => void next()
    const { one } = deliveryOf(
      each(() => Promise.reject(bad)),
      {},
      { middleware: [{ consume }] },
    )
    const outcomes: Outcome[] = []
    const unhandled = await unhandledWhile(async () => outcomes.push(await one()))

    expect([outcomes, unhandled]).toEqual([[{ kind: 'fail', error: bad, isShared: false }], []])
  })

  test('a handler that a stop interrupts within it is interrupted, though it returns', async () => {
    const { one, controller } = deliveryOf(
      each(() => {
        controller.abort(runtimeError('OUTBOX_STOPPING', 'the outbox stops'))
      }),
      { ack: 'manual' },
      { middleware: [{ consume: (_, next) => next() }] },
    )

    await expect(one()).resolves.toEqual({ kind: 'interrupt' })
  })

  test.each(['auto', 'reject-on-error', 'manual'] as const)(
    'ack: %s, one that catches what the handler threw has acknowledged it',
    async (mode) => {
      const consume: Middleware['consume'] = (_, next) => next().catch(() => {})
      const { one } = deliveryOf(
        each(() => Promise.reject(bad)),
        { ack: mode },
        { middleware: [{ consume }] },
      )

      await expect(one()).resolves.toEqual(ack)
    },
  )

  test('what the handler decided stands when it throws', async () => {
    const consume: Middleware['consume'] = async (_, next) => {
      await next()
      throw bad
    }
    const { one } = deliveryOf(
      each((_, context) => context.snooze(5)),
      {},
      { middleware: [{ consume }] },
    )

    await expect(one()).resolves.toEqual({ kind: 'snooze', delayMs: 5 })
  })

  test('a function that the handler returned fails the delivery through it, too; what it answers itself is ignored', async () => {
    const passing = { consume: async (_: Delivery, next: () => Promise<void>) => next() }
    const answering = { consume: () => () => {} }
    const throughIt = deliveryOf(
      each((_, { retry }) => retry),
      {},
      { middleware: [passing] },
    )
    const byItself = deliveryOf(
      each(() => {}),
      {},
      { middleware: [answering] },
    )

    await expect(throughIt.one()).resolves.toMatchObject({
      kind: 'fail',
      error: { code: 'OUTBOX_INVALID_OUTCOME' },
    })
    await expect(byItself.one()).resolves.toEqual(ack)
  })

  test('cannot take messages out of a batch: they would be acknowledged, and nobody has seen them', async () => {
    const consume: Middleware['consume'] = ({ messages }, next) => {
      ;(messages as Message[]).pop()
      return next()
    }
    const { all } = deliveryOf(
      batch(() => {}),
      {},
      { middleware: [{ consume }] },
    )

    expect((await all(leasesUpTo(2))).map(({ kind }) => kind)).toEqual(['fail', 'fail'])
  })

  test('its time is the time of the handler', async () => {
    const consume = (): Promise<void> => new Promise(() => {})
    const { one, clock } = deliveryOf(
      each(() => {}),
      { timeoutMs: 300 },
      { middleware: [{ consume }] },
    )
    const delivered = one()
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(300)

    await expect(delivered).resolves.toMatchObject({
      kind: 'fail',
      error: { code: 'OUTBOX_HANDLER_TIMEOUT' },
    })
  })
})
