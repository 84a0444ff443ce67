import { describe, expect, test } from 'vitest'
import { deliveryOf, each, leaseOf } from '../../../../tests/support/delivery-bench.ts'
import { LeaseLostError } from '../core/errors.ts'
import type { Context } from '../core/handler.ts'
import type { Message } from '../core/message.ts'
import type { Outcome } from '../core/outcome.ts'
import { runtimeError } from '../core/runtime-errors.ts'

/** Resolves when everything that could run without waiting has run. */
const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const bad = new Error('bad')
const stopping = runtimeError('OUTBOX_STOPPING', 'the outbox stops')

const ack: Outcome = { kind: 'ack', followOns: [] }
const fail: Outcome = { kind: 'fail', error: bad, isShared: false }
const reject: Outcome = { kind: 'reject', error: bad, isSaid: false }
const snooze: Outcome = { kind: 'snooze', delayMs: 5 }

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((_, refuse) => signal.addEventListener('abort', () => refuse(signal.reason), { once: true }))

describe('what a handler gets', () => {
  test('the message as it is stored, with its body decoded, and frozen', async () => {
    let got: Message | undefined
    const { one } = deliveryOf(
      each((message) => {
        got = message
      }),
    )
    const createdAt = new Date(5)
    const headers = { 'correlation-id': 'order-7', tenant: 'blue' }
    const held = leaseOf({ seq: '7', key: 'k', headers, attempt: 2, deliveries: 3, createdAt, generation: 4 })
    await one(held)

    expect(got).toEqual({
      id: 'id-7',
      seq: '7',
      queue: 'orders',
      key: 'k',
      body: { n: 7 },
      headers,
      correlationId: 'order-7',
      attempt: 2,
      deliveries: 3,
      afterDead: null,
      createdAt,
      generation: 4,
      raw: held.lease.body,
    })
    expect(Object.isFrozen(got)).toBe(true)
  })

  test('without a correlation id of its own, a message is the beginning of its business transaction', async () => {
    let got: string | undefined
    const handler = each(({ correlationId }) => {
      got = correlationId
    })
    await deliveryOf(handler).one(leaseOf({ seq: '7' }))

    expect(got).toBe('id-7')
  })

  test('a body that cannot be read does not reach it', async () => {
    let runs = 0
    const { one, told } = deliveryOf(each(() => runs++))
    const outcome = await one(leaseOf({ body: Buffer.from('{') }))

    expect([outcome, runs, told]).toEqual([
      { kind: 'invalid', error: expect.objectContaining({ code: 'OUTBOX_INVALID_BODY' }) },
      0,
      [],
    ])
  })
})

type Ack = 'auto' | 'reject-on-error' | 'manual'

const endings = {
  returns: async () => 'a value',
  'throws at once': () => {
    throw bad
  },
  rejects: () => Promise.reject(bad),
  decides: (context: Context) => context.snooze(5),
  'decides, then throws': (context: Context) => {
    context.snooze(5)
    throw bad
  },
  'returns a function': (context: Context) => context.retry,
  'decides, then returns a function': (context: Context) => {
    context.snooze(5)
    return context.retry
  },
} as const

const invalidOutcome = expect.objectContaining({ code: 'OUTBOX_INVALID_OUTCOME' })
const undecided: Outcome = { kind: 'reject', error: expect.stringContaining('`ack: manual`'), isSaid: true }

const table: readonly [keyof typeof endings, Record<Ack, unknown>][] = [
  ['returns', { auto: ack, 'reject-on-error': ack, manual: undecided }],
  // Under 'manual' it has not decided, but it has failed: never a rejection.
  ['throws at once', { auto: fail, 'reject-on-error': reject, manual: fail }],
  ['rejects', { auto: fail, 'reject-on-error': reject, manual: fail }],
  ['decides', { auto: snooze, 'reject-on-error': snooze, manual: snooze }],
  ['decides, then throws', { auto: snooze, 'reject-on-error': snooze, manual: snooze }],
  [
    'returns a function',
    {
      auto: { ...fail, error: invalidOutcome },
      'reject-on-error': { ...reject, error: invalidOutcome },
      manual: { ...fail, error: invalidOutcome },
    },
  ],
  ['decides, then returns a function', { auto: snooze, 'reject-on-error': snooze, manual: snooze }],
]

describe('what a delivery comes to', () => {
  test.each(
    table.flatMap(([how, outcomes]) =>
      (Object.entries(outcomes) as [Ack, unknown][]).map(([mode, outcome]) => [mode, how, outcome] as const),
    ),
  )('ack: %s, and the handler %s', async (mode, how, outcome) => {
    const { one } = deliveryOf(
      each((_, context) => endings[how](context)),
      { ack: mode },
    )

    await expect(one()).resolves.toEqual(outcome)
  })

  test.each<Ack>(['auto', 'reject-on-error', 'manual'])(
    'ack: %s, and the handler acknowledges: acknowledged',
    async (mode) => {
      await expect(
        deliveryOf(
          each((_, { ack: decide }) => decide()),
          { ack: mode },
        ).one(),
      ).resolves.toEqual(ack)
    },
  )

  test('one that throws after it has decided is told of, with what it threw; others are not', async () => {
    const decided = deliveryOf(each((_, context) => endings['decides, then throws'](context)))
    await decided.one(leaseOf({ seq: '7', attempt: 2, deliveries: 3 }))
    const quiet = await Promise.all(
      (['returns', 'throws at once', 'decides'] as const).map(async (how) => {
        const { one, told } = deliveryOf(each((_, context) => endings[how](context)))
        await one()
        return told
      }),
    )

    expect(decided.told).toEqual([
      {
        kind: 'warning',
        code: 'thrown_after_decision',
        message: 'the handler threw after it had decided: snooze stands',
        fields: { queue: 'orders', id: 'id-7', seq: '7', attempt: 2, deliveries: 3 },
        error: bad,
      },
    ])
    expect(quiet).toEqual([[], [], []])
  })

  test('a decision that is refused fails the handler that does not catch it', async () => {
    const { one } = deliveryOf(each((_, context) => context.snooze(-1)))

    await expect(one()).resolves.toEqual({
      kind: 'fail',
      error: expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' }),
      isShared: false,
    })
  })

  test.each([undefined, null, 'text', Object.create(null)])(
    'whatever is thrown is its error: %s',
    async (thrown) => {
      await expect(deliveryOf(each(() => Promise.reject(thrown))).one()).resolves.toEqual({
        kind: 'fail',
        error: thrown,
        isShared: false,
      })
    },
  )

  test('what is decided after the handler has ended changes nothing', async () => {
    let kept: Context | undefined
    const { one } = deliveryOf(
      each((_, context) => {
        kept = context
      }),
    )
    const outcome = await one()
    kept?.reject('late')

    expect(outcome).toEqual(ack)
  })
})

describe('a handler that a stop interrupts', () => {
  test.each<Ack>(['auto', 'reject-on-error', 'manual'])(
    'ack: %s, one that gives up because it was told to is interrupted',
    async (mode) => {
      const { one, controller } = deliveryOf(
        each((_, { signal }) => untilAborted(signal)),
        { ack: mode },
      )
      const delivered = one()
      await idle()
      controller.abort(stopping)

      await expect(delivered).resolves.toEqual({ kind: 'interrupt' })
    },
  )

  test.each<[Ack, Outcome]>([
    ['auto', ack],
    ['reject-on-error', ack],
    // It is asked to decide, and had no time to.
    ['manual', { kind: 'interrupt' }],
  ])('ack: %s, one that returns undecided because it was told to: %j', async (mode, outcome) => {
    const { one, controller } = deliveryOf(
      each((_, { signal }) => untilAborted(signal).catch(() => {})),
      { ack: mode },
    )
    const delivered = one()
    await idle()
    controller.abort(stopping)

    await expect(delivered).resolves.toEqual(outcome)
  })

  test('one that throws something else because of it is interrupted, too', async () => {
    const { one, controller } = deliveryOf(
      each((_, { signal }) => untilAborted(signal).catch(() => Promise.reject(bad))),
    )
    const delivered = one()
    await idle()
    controller.abort(stopping)

    await expect(delivered).resolves.toEqual({ kind: 'interrupt' })
  })

  test('one that failed before has failed', async () => {
    const { one, controller } = deliveryOf(each(() => Promise.reject(bad)))
    const delivered = one()
    await idle()
    controller.abort(stopping)

    await expect(delivered).resolves.toEqual(fail)
  })

  test('one that ignores its signal and returns is acknowledged', async () => {
    let end = (): void => {}
    const { one, controller } = deliveryOf(
      each(
        () =>
          new Promise<void>((resolve) => {
            end = resolve
          }),
      ),
    )
    const delivered = one()
    await idle()
    controller.abort(stopping)
    end()

    await expect(delivered).resolves.toEqual(ack)
  })

  test('what it decided before stands', async () => {
    const { one, controller } = deliveryOf(
      each((_, context) => {
        context.snooze(5)
        return untilAborted(context.signal)
      }),
    )
    const delivered = one()
    await idle()
    controller.abort(stopping)

    await expect(delivered).resolves.toEqual(snooze)
  })

  test('one that returns a function after it was told to stop has failed: that was no giving up', async () => {
    const { one, controller } = deliveryOf(each((_, { retry }) => Promise.resolve(retry)))
    controller.abort(stopping)

    await expect(one()).resolves.toEqual({ ...fail, error: invalidOutcome })
  })

  test('one whose lease is lost has failed: only a stop interrupts', async () => {
    const lost = new LeaseLostError('taken over')
    const { one, controller } = deliveryOf(each((_, { signal }) => untilAborted(signal)))
    const delivered = one()
    await idle()
    controller.abort(lost)

    await expect(delivered).resolves.toEqual({ ...fail, error: lost })
  })
})
