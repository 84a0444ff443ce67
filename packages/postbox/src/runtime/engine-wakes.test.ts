import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  asleep,
  benchOf,
  idle,
  kindsOf,
  leased,
  queueOf,
  started,
} from '../../../../tests/support/engine-bench.ts'

beforeEach(() => {
  vi.spyOn(Math, 'random').mockReturnValue(1)
})

afterEach(() => {
  vi.restoreAllMocks()
})

describe('a message that was put back', () => {
  test('is slept for, when it is due before anything else', async () => {
    const { engine, clock, claims, advance } = await asleep()
    engine.putBack('orders', 700)
    await idle()
    const left = clock.left
    await advance(700)

    expect([left, kindsOf(claims)]).toEqual([[700], ['sweep', 'claim']])
  })

  test('does not cut a sleep short that ends before it is due', async () => {
    const { engine, clock } = await asleep({ nextDueAt: 300 })
    engine.putBack('orders', 700)
    await idle()

    expect(clock.asked).toEqual([300])
  })
})

describe('while publishers that may be quiet are waited for', () => {
  test('it looks again soon, whatever pollMs says, ever later, and anew once it was safe', async () => {
    const orders = queueOf('orders', { pollMs: { min: 600_000, max: 600_000 } })
    const { claims, clock, waker, advance } = await started(orders)
    Object.assign(waker, { isSafe: false, isListening: true })
    await claims[0]!.find()
    for (const [index, ms] of [20, 40, 80].entries()) {
      await advance(ms)
      await claims[index + 1]!.find()
    }
    waker.isSafe = true
    await advance(160)
    await claims[4]!.find()

    expect(clock.asked).toEqual([20, 40, 80, 160, 600_000])
  })
})

describe('woken by a publisher', () => {
  test('it takes what is fresh in his queue before it looks at everything', async () => {
    const { engine, claims, claimer, orders, held, told } = await asleep()
    const message = leased(1)
    claimer.fresh = async () => ({ held: [message] })
    engine.notified('orders')
    await idle()

    expect(claimer.hasty).toEqual([{ queue: 'orders', room: 10, leaseMs: 30_000 }])
    expect([orders.taken, [...held], kindsOf(claims)]).toEqual([[message], [message], ['sweep', 'sweep']])
    expect(told.filter(({ kind }) => kind === 'claimed')).toContainEqual(
      expect.objectContaining({ queue: 'orders', count: 1 }),
    )
  })

  test.each([
    ['by the least claim', true],
    ['by the look', false],
  ])('it begins the ladder of its polls anew with what is found %s', async (_, isHasty) => {
    const orders = queueOf('orders', { pollMs: { min: 100, max: 30_000 } })
    const { engine, claims, claimer, clock, waker, held } = await started(orders)
    const find = async (n: number): Promise<void> => {
      engine.notified('orders')
      await idle()
      await claims[n]!.find(isHasty ? {} : { orders: { held: [leased(n)] } })
      held.clear()
    }
    claimer.fresh = async () => (isHasty ? { held: [leased(0)] } : {})
    Object.assign(waker, { isSafe: true, isListening: true })
    await claims[0]!.find()
    for (let n = 1; n <= 10; n++) await find(n)
    // Its connection is lost.
    Object.assign(waker, { isSafe: false, isListening: false })
    await find(11)

    expect(clock.asked.at(-1)).toBeLessThanOrEqual(200)
  })

  test('it looks at everything, whether there was something or not: the least claim learns nothing', async () => {
    const { engine, claims, told } = await asleep({ nextDueAt: 300 })
    const before = told.length
    engine.notified('orders')
    await idle()

    expect(kindsOf(claims)).toEqual(['sweep', 'sweep'])
    expect(told.slice(before)).toEqual([{ kind: 'claimed', queue: 'orders', count: 0 }])
  })

  test('it goes by the last look, not by the least claim, for when the next message is due', async () => {
    const { engine, claims, claimer, clock } = await asleep({ nextDueAt: 300 })
    claimer.fresh = async () => ({ held: [leased(1)] })
    engine.notified('orders')
    await idle()
    await claims[1]!.find({ orders: { nextDueAt: 200 } })

    expect(clock.asked).toEqual([300, 200])
  })

  test('it sends nothing more when there is no room left, and gets up: it will look again by itself', async () => {
    const { engine, claims, claimer, orders, waker } = await asleep()
    claimer.fresh = async () => {
      orders.setRoom(0)
      return { held: [leased(1)], isFull: true }
    }
    engine.notified('orders')
    await idle()

    expect([kindsOf(claims), waker.up]).toEqual([['sweep'], ['orders']])
  })

  test('it does not hurry while it is awake, nor a second time', async () => {
    const { engine, claims, claimer } = await started(queueOf('orders'))
    engine.notified('orders')
    await claims[0]!.find({ orders: { held: [leased(1)] } })
    const awake = claimer.hasty.length
    await claims[1]!.find()
    engine.notified('orders')
    await idle()
    engine.notified('orders')
    await claims[2]!.find({ orders: { held: [leased(2)] } })

    expect([awake, claimer.hasty.length]).toEqual([0, 1])
  })

  test('it does not hurry for a queue without room, even when there is some again', async () => {
    const { engine, claimer, orders } = await asleep()
    orders.setRoom(0)
    engine.notified('orders')
    await idle()
    orders.setRoom(5)
    engine.roomMade()
    await idle()

    expect(claimer.hasty).toEqual([])
  })

  test('it does not hurry for a queue in the order of its keys: what may be taken of those, another statement knows', async () => {
    const orders = queueOf('orders', {}, { orders: { order: 'key' } })
    const { engine, claims, claimer } = await started(orders)
    await claims[0]!.find()
    engine.notified('orders')
    await idle()

    expect([claimer.hasty, kindsOf(claims)]).toEqual([[], ['sweep', 'sweep']])
  })

  test('a least claim that fails is a claim that failed: it is told, and everything is looked at later', async () => {
    const { engine, claims, claimer, told, advance } = await asleep()
    const error = new Error('connection lost')
    claimer.fresh = () => Promise.reject(error)
    engine.notified('orders')
    await idle()
    const failed = told.filter(({ kind }) => kind === 'claim_failed')
    await advance(60_000)

    expect(failed).toEqual([expect.objectContaining({ error })])
    expect(kindsOf(claims)).toEqual(['sweep', 'sweep'])
  })
})

describe('getting up', () => {
  test('for a queue that was published to while its own claim brought something: it is looked at anyway', async () => {
    const { engine, claims, waker } = await started(queueOf('orders'), queueOf('mails'))
    engine.notified('orders')
    await claims[0]!.find({ orders: { held: [leased(1)] }, mails: { held: [leased(2)] } })

    expect(waker.up).toEqual(['orders'])
  })

  test('not for one that was published to and had nothing: somebody else was faster', async () => {
    const { engine, claims, waker } = await started(queueOf('orders'))
    engine.notified('orders')
    await claims[0]!.find()

    expect(waker.up).toEqual([])
  })
})

describe('a sweep that fails', () => {
  test('is followed by a claim: fresh messages do not wait for one that takes too long', async () => {
    const { claims, claimer, advance } = await started(queueOf('orders'))
    claimer.sweepMs = 10
    await claims[0]!.fail(new Error('too late'))
    await advance(100)
    await claims[1]!.find()
    await advance(100)

    expect(kindsOf(claims)).toEqual(['sweep', 'claim', 'sweep'])
  })
})

describe('what failed after something was claimed', () => {
  const lost = new Error('connection lost')

  /** The claim of `mails` brings something, and the one of `orders` has failed. */
  async function halfFailed() {
    const bench = await started(queueOf('mails'), queueOf('orders'))
    const { belated } = bench.claimer
    const held = [leased(1)]
    const found = [{ queue: 'mails', isFull: false, held, nextDueAt: null, pause: null }]
    await belated.after(found, Promise.reject(lost), [])
    return { ...bench, held }
  }

  test('has the next claim come at once, for all queues: nobody else would wake us for those that were not heard of', async () => {
    const { claims, held, clock } = await halfFailed()
    await claims[0]!.find({ mails: { held } })

    expect(claims[1]?.demands.map(({ queue }) => queue)).toEqual(['mails', 'orders'])
    expect(clock.asked).toEqual([])
  })

  test('is told when it is halted before the next claim, once', async () => {
    const { claims, claimer, held, halt, told, state } = await halfFailed()
    halt.abort()
    await claims[0]!.find({ mails: { held } })

    expect([state.isOver, claims.length, claimer.belated.isUntold]).toEqual([true, 1, false])
    expect(told.filter(({ kind }) => kind === 'claim_failed')).toEqual([
      { kind: 'claim_failed', error: lost, delayMs: 0 },
    ])
  })

  test('is not told of when nothing has', async () => {
    const { claims, halt, told } = await started(queueOf('orders'))
    halt.abort()
    await claims[0]!.find()

    expect(told.filter(({ kind }) => kind === 'claim_failed')).toEqual([])
  })
})

test('a run whose signal has already aborted claims nothing and ends', async () => {
  const { engine, claims } = benchOf([queueOf('orders')])

  await expect(engine.run(AbortSignal.abort())).resolves.toBeUndefined()
  expect(claims).toEqual([])
})
