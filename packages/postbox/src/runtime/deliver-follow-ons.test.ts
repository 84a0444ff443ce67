import { describe, expect, test } from 'vitest'
import {
  batch,
  deliveryOf,
  each,
  leaseOf,
  leasesUpTo,
  unhandledWhile,
} from '../../../../tests/support/delivery-bench.ts'
import type { Context } from '../core/handler.ts'
import type { Draft } from '../core/message.ts'
import type { Middleware } from '../core/middleware.ts'
import type { Outcome } from '../core/outcome.ts'

const bad = new Error('bad')
const ack: Outcome = { kind: 'ack', followOns: [] }
const refused = {
  kind: 'fail',
  error: expect.objectContaining({ code: 'OUTBOX_INVALID_BODY' }),
  isShared: false,
}

const followOnsOf = (outcome: Outcome): readonly Draft[] => (outcome.kind === 'ack' ? outcome.followOns : [])

describe('the follow-on messages of a delivery', () => {
  test.each<[string, (context: Context) => unknown]>([
    ['returns', () => {}],
    ['acknowledges', (context) => context.ack()],
  ])('are published, awaited or not, in their order, when the handler %s', async (_, end) => {
    const { one } = deliveryOf(
      each(async (_message, context) => {
        void context.publish('mails', 1)
        await context.publish('logs', 2)
        void context.publish('mails', 3)
        return end(context)
      }),
    )
    const bodies = followOnsOf(await one()).map(({ queue, body }) => [queue, Buffer.from(body).toString()])

    expect(bodies).toEqual([
      ['mails', '1'],
      ['logs', '2'],
      ['mails', '3'],
    ])
  })

  test.each<[string, (context: Context) => unknown, Outcome]>([
    ['throws', () => Promise.reject(bad), { kind: 'fail', error: bad, isShared: false }],
    ['retries', (context) => context.retry(), { kind: 'retry', afterMs: null, error: undefined }],
    ['rejects', (context) => context.reject('no'), { kind: 'reject', error: 'no', isSaid: true }],
    ['snoozes', (context) => context.snooze(5), { kind: 'snooze', delayMs: 5 }],
  ])('are dropped when the handler %s', async (_, end, outcome) => {
    const { one } = deliveryOf(
      each(async (_message, context) => {
        await context.publish('mails', 1)
        return end(context)
      }),
    )

    await expect(one()).resolves.toEqual(outcome)
  })

  test.each<[string, (context: Context) => unknown]>([
    ['waits for it', (context) => context.publish('mails', () => {})],
    ['catches it', (context) => context.publish('mails', () => {}).catch(() => {})],
    ['does not wait for it', (context) => void context.publish('mails', () => {})],
    [
      'acknowledges first',
      (context) => {
        context.ack()
        void context.publish('mails', () => {})
      },
    ],
  ])(
    'one that is refused fails the delivery when the handler %s, and is no unhandled rejection',
    async (_, publish) => {
      let outcome: Outcome | undefined
      const unhandled = await unhandledWhile(async () => {
        outcome = await deliveryOf(each((_message, context) => publish(context))).one()
      })

      expect([outcome, unhandled]).toEqual([refused, []])
    },
  )

  test.each(['auto', 'manual', 'reject-on-error'] as const)(
    'ack: %s, one that is refused makes of the delivery what an error of the handler would',
    async (mode) => {
      const { one } = deliveryOf(
        each((_, context) => {
          context.ack()
          void context.publish('mails', () => {})
        }),
        { ack: mode },
      )
      const rejected = { kind: 'reject', error: refused.error, isSaid: false }

      expect(await one()).toEqual(mode === 'reject-on-error' ? rejected : refused)
    },
  )

  test('one that is refused does not change what was decided otherwise', async () => {
    const { one } = deliveryOf(
      each((_, context) => {
        void context.publish('mails', () => {})
        context.snooze(5)
      }),
    )

    await expect(one()).resolves.toEqual({ kind: 'snooze', delayMs: 5 })
  })

  test('one that a middleware keeps back is not published; the others are', async () => {
    const keep: Middleware = {
      publish: ({ queue }, next) => (queue === 'mails' ? Promise.resolve([null]) : next()),
    }
    const { one } = deliveryOf(
      each(async (_, context) => {
        await context.publish('mails', 1)
        await context.publish('logs', 2)
      }),
      {},
      { middleware: [keep] },
    )

    expect(followOnsOf(await one()).map(({ queue }) => queue)).toEqual(['logs'])
  })

  test.each<[string, Middleware['publish']]>([
    ['instead of letting it through', () => Promise.reject(bad)],
    [
      'after it has let it through',
      async (_, next) => {
        await next()
        throw bad
      },
    ],
  ])('one at which a middleware throws, %s, fails the delivery', async (_, publish) => {
    const { one } = deliveryOf(
      each((_message, context) => void context.publish('mails', 1)),
      {},
      { middleware: [{ publish: publish! }] },
    )

    await expect(one()).resolves.toEqual({ kind: 'fail', error: bad, isShared: false })
  })

  test('while they are still being checked the handler has ended: what it says then comes too late', async () => {
    let kept: Context | undefined
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const { one } = deliveryOf(
      each((_, context) => {
        kept = context
        void context.publish('mails', 1)
      }),
      {},
      { middleware: [{ publish: (_, next) => held.then(() => next()) }] },
    )
    const delivered = one()
    await new Promise((resolve) => setImmediate(resolve))
    kept?.snooze(5)
    const late = kept?.publish('mails', 2)
    release()

    expect(followOnsOf(await delivered).map(({ body }) => Buffer.from(body).toString())).toEqual(['1'])
    await expect(late).rejects.toMatchObject({ code: 'OUTBOX_DELIVERY_OVER' })
  })

  test('they carry on the correlation id, and the headers that the subscription propagates', async () => {
    const { one } = deliveryOf(
      each((_, context) => context.publish('mails', 1, { headers: { mine: '1' } })),
      { propagateHeaders: ['Tenant'] },
    )
    const headers = {
      'content-type': 'application/json',
      'correlation-id': 'order-7',
      tenant: 'blue',
      other: 'x',
    }

    expect(followOnsOf(await one(leaseOf({ headers })))[0]?.headers).toEqual({
      'correlation-id': 'order-7',
      tenant: 'blue',
      mine: '1',
    })
  })

  test('in a batch, one that is refused fails its own message alone, and is no unhandled rejection', async () => {
    let outcomes: readonly Outcome[] = []
    const unhandled = await unhandledWhile(async () => {
      outcomes = await deliveryOf(
        batch((messages, context) => {
          void context.publish(messages[0]!, { queue: 'mails', body: 1 })
          void context.publish(messages[1]!, { queue: 'mails', body: () => {} })
        }),
      ).all(leasesUpTo(3))
    })

    const published = { kind: 'ack', followOns: [expect.objectContaining({ queue: 'mails' })] }
    expect([outcomes, unhandled]).toEqual([[published, refused, ack], []])
  })
})
