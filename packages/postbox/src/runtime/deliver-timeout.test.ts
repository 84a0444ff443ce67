import { describe, expect, test } from 'vitest'
import {
  batch,
  deliveryOf,
  each,
  leasesUpTo,
  unhandledWhile,
} from '../../../../tests/support/delivery-bench.ts'
import type { Context } from '../core/handler.ts'
import type { Middleware } from '../core/middleware.ts'
import type { Outcome } from '../core/outcome.ts'
import type { SubscribeSettings } from '../core/subscribe-options.ts'

/** Resolves when everything that could run without waiting has run. */
const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const never = (): Promise<never> => new Promise(() => {})

type Ack = SubscribeSettings['ack']

const bad = new Error('bad')
const snooze: Outcome = { kind: 'snooze', delayMs: 5 }
const outOfTime = expect.objectContaining({ code: 'OUTBOX_HANDLER_TIMEOUT' })
const failed = { kind: 'fail', error: outOfTime, isShared: false }
const rejected = { kind: 'reject', error: outOfTime, isSaid: false }

/** Begins a delivery of at most 300 ms, and lets that time pass. Undefined: it has not ended. */
async function timedOut({ one, clock }: ReturnType<typeof deliveryOf>): Promise<Outcome | undefined> {
  let outcome: Outcome | undefined
  void one().then((came) => {
    outcome = came
  })
  await idle()
  clock.advance(300)
  await idle()
  return outcome
}

describe('a handler that is out of time', () => {
  test('a decision that it made before stands', async () => {
    const delivery = deliveryOf(
      each((_, context) => {
        context.snooze(5)
        return never()
      }),
      { timeoutMs: 300 },
    )

    expect(await timedOut(delivery)).toEqual(snooze)
    expect(delivery.told).toEqual([
      expect.objectContaining({ code: 'thrown_after_decision', error: outOfTime }),
    ])
  })

  test('it has failed, and nothing that it decides or publishes later counts', async () => {
    let kept: Context | undefined
    const delivery = deliveryOf(
      each((_, context) => {
        kept = context
        return never()
      }),
      { timeoutMs: 300 },
    )
    const outcome = await timedOut(delivery)
    const late = kept?.publish('mails', 1)
    kept?.ack()

    const message = expect.stringContaining('300 ms')
    expect(outcome).toEqual({
      ...failed,
      error: expect.objectContaining({ code: 'OUTBOX_HANDLER_TIMEOUT', message }),
    })
    await expect(late).rejects.toMatchObject({ code: 'OUTBOX_DELIVERY_OVER' })
  })

  // Whoever listens to the signal runs while it aborts, before anybody else can.
  test('what it decides or publishes when its signal says so comes too late, too', async () => {
    const late: Promise<unknown>[] = []
    const delivery = deliveryOf(
      each((_, context) => {
        context.signal.addEventListener('abort', () => {
          context.ack()
          late.push(context.publish('mails', 1))
        })
        return never()
      }),
      { timeoutMs: 300 },
    )

    expect(await timedOut(delivery)).toEqual(failed)
    expect(delivery.told).toEqual([])
    await expect(late[0]).rejects.toMatchObject({ code: 'OUTBOX_DELIVERY_OVER' })
  })

  test('its signal says that its time is over', async () => {
    const delivery = deliveryOf(each(never), { timeoutMs: 300 })
    await timedOut(delivery)

    expect(delivery.controller.signal.reason).toEqual(outOfTime)
  })

  test('one that ends in time is neither told to give up nor waited for', async () => {
    const { one, clock, controller } = deliveryOf(
      each(() => {}),
      { timeoutMs: 300 },
    )
    const outcome = await one()

    expect([outcome.kind, clock.asked, clock.left, controller.signal.aborted]).toEqual([
      'ack',
      [300],
      [],
      false,
    ])
  })

  test.each<[Ack, object]>([
    ['auto', failed],
    ['manual', failed],
    ['reject-on-error', rejected],
  ])('ack: %s makes it what any that throws is', async (mode, outcome) => {
    expect(await timedOut(deliveryOf(each(never), { timeoutMs: 300, ack: mode }))).toEqual(outcome)
  })
})

/** Never lets anything to the queue `hung`. */
const hanging: Middleware = { publish: ({ queue }, next) => (queue === 'hung' ? never() : next()) }

const publishing = (handler: (context: Context) => unknown, mode: Ack = 'auto') =>
  deliveryOf(
    each((_, context) => handler(context)),
    { timeoutMs: 300, ack: mode },
    { middleware: [hanging] },
  )

describe('a follow-on message that is never checked to its end', () => {
  test.each<[string, (context: Context) => unknown]>([
    ['that the handler waits for', (context) => context.publish('hung', 1)],
    ['that it began before it returned', (context) => void context.publish('hung', 1)],
  ])('%s: the handler is out of time', async (_, publish) => {
    expect(await timedOut(publishing(publish))).toEqual(failed)
  })

  test.each<[Ack, object]>([
    ['auto', failed],
    ['manual', failed],
    ['reject-on-error', rejected],
  ])(
    'ack: %s, cannot be left out: the delivery is out of time, though it was acknowledged, and nobody says that this stands',
    async (mode, outcome) => {
      for (const end of [undefined, never]) {
        const delivery = publishing((context) => {
          void context.publish('mails', 1)
          void context.publish('hung', 2)
          context.ack()
          return end?.()
        }, mode)

        expect(await timedOut(delivery)).toEqual(outcome)
        expect(delivery.told).toEqual([])
      }
    },
  )

  test('does not change what was decided otherwise: it is not published anyway', async () => {
    const delivery = publishing((context) => {
      void context.publish('hung', 1)
      context.snooze(5)
    })

    expect(await timedOut(delivery)).toEqual(snooze)
  })

  test('is waited for until the time is over, and not given up before', async () => {
    const delivery = publishing((context) => void context.publish('hung', 1))
    let hasEnded = false
    void delivery.one().then(() => {
      hasEnded = true
    })
    await idle()
    delivery.clock.advance(299)
    await idle()
    const before = hasEnded
    delivery.clock.advance(1)
    await idle()

    expect([before, hasEnded]).toEqual([false, true])
  })

  test('fails its own message alone, of a batch that was acknowledged', async () => {
    const { all, clock } = deliveryOf(
      batch(([first, second, third], context) => {
        void context.publish(second!, { queue: 'hung', body: 1 })
        void context.publish(third!, { queue: 'mails', body: 2 })
        for (const message of [first!, second!, third!]) context.ack(message)
      }),
      { timeoutMs: 300 },
      { middleware: [hanging] },
    )
    const delivered = all(leasesUpTo(3))
    await idle()
    clock.advance(300)

    const published = { kind: 'ack', followOns: [expect.objectContaining({ queue: 'mails' })] }
    expect(await delivered).toEqual([{ kind: 'ack', followOns: [] }, failed, published])
  })
})

describe('follow-on messages of a handler that acknowledges and is out of time', () => {
  test('are published when all are checked', async () => {
    const delivery = publishing(async (context) => {
      context.ack()
      await context.publish('mails', 1)
      return never()
    })

    expect(await timedOut(delivery)).toEqual({
      kind: 'ack',
      followOns: [expect.objectContaining({ queue: 'mails' })],
    })
  })

  test('fail it when one was refused, by that', async () => {
    const delivery = publishing((context) => {
      context.ack()
      void context.publish('mails', () => {})
      return never()
    })
    const error = expect.objectContaining({ code: 'OUTBOX_INVALID_BODY' })

    expect(await timedOut(delivery)).toEqual({ ...failed, error })
  })

  test('that are refused later are no unhandled rejection', async () => {
    let refuse = (_: Error): void => {}
    const refusing: Middleware = {
      publish: () =>
        new Promise((_, reject) => {
          refuse = reject
        }),
    }
    let outcome: Outcome | undefined
    const unhandled = await unhandledWhile(async () => {
      const publish = each((_, context) => void context.publish('mails', 1))
      outcome = await timedOut(deliveryOf(publish, { timeoutMs: 300 }, { middleware: [refusing] }))
      refuse(bad)
    })

    expect([outcome, unhandled]).toEqual([failed, []])
  })
})
