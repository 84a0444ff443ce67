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
import type { Engine } from './engine.ts'
import type { Failpoint } from './failpoint.ts'

beforeEach(() => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
})

afterEach(() => {
  vi.restoreAllMocks()
})

describe('looking', () => {
  test('asks with one claim for all queues that have room, and gives each what was found in it', async () => {
    const [orders, full, mails] = [queueOf('orders'), queueOf('full'), queueOf('mails', { leaseMs: 60_000 })]
    full.setRoom(0)
    const { claims, held } = await started(orders, full, mails)
    const [one, other] = [leased(1), leased(2)]
    await claims[0]!.find({ orders: { held: [one] }, mails: { held: [other] } })

    expect(claims.map(({ demands }) => demands)).toEqual([
      [
        { queue: 'orders', room: 10, leaseMs: 30_000 },
        { queue: 'mails', room: 10, leaseMs: 60_000 },
      ],
    ])
    expect([orders.taken, full.taken, mails.taken]).toEqual([[one], [], [other]])
    expect([...held]).toEqual([one, other])
  })

  test('tells of each claim, for each queue that it asked for, also when it found nothing', async () => {
    const full = queueOf('full')
    full.setRoom(0)
    const { claims, told } = await started(queueOf('orders'), full, queueOf('mails'))
    await claims[0]!.find({ orders: { held: [leased(1), leased(2)] } })

    expect(told).toEqual([
      { kind: 'claimed', queue: 'orders', count: 2 },
      { kind: 'claimed', queue: 'mails', count: 0 },
    ])
  })

  test('tells of no claim that nobody hears of', async () => {
    const { claims, told, run } = benchOf([queueOf('orders')], { isHeard: false })
    await run()
    await claims[0]!.find({ orders: { held: [leased(1)] } })

    expect(told).toEqual([])
  })

  test('a full claim is followed by another at once while there is room, and its queue gets up', async () => {
    const { claims, clock, waker } = await started(queueOf('orders'), queueOf('mails'))
    await claims[0]!.find({ mails: { held: [leased(1)], isFull: true } })

    expect([claims.length, clock.asked, waker.lain]).toEqual([2, [], []])
    expect(waker.up).toEqual(['mails'])
  })

  test('a full claim is followed by another as soon as there is room, and not before', async () => {
    const orders = queueOf('orders')
    const { claims, engine } = await started(orders)
    orders.setRoom(0)
    await claims[0]!.find({ orders: { isFull: true } })
    const before = claims.length
    orders.setRoom(1)
    engine.roomMade()
    await idle()

    expect([before, claims.length]).toEqual([1, 2])
  })

  test('a queue that is added while it sleeps is looked at, with a sweep', async () => {
    const { engine, claims } = await asleep()
    engine.add(queueOf('mails').dispatcher)
    await idle()

    expect(kindsOf(claims)).toEqual(['sweep', 'sweep'])
    expect(claims[1]!.demands.map(({ queue }) => queue)).toEqual(['orders', 'mails'])
  })

  test('without queues it asks for nothing, and sleeps for an hour', async () => {
    const { claims, clock, waker } = await started()

    expect([claims, waker.lain, clock.asked]).toEqual([[], [], [3_600_000]])
  })
})

describe('sleeping', () => {
  test('after a claim that is not full it lies down on the queues that have no more, and sleeps', async () => {
    const busy = queueOf('busy')
    const { claims, clock, waker, advance } = await started(queueOf('orders'), busy)
    await claims[0]!.find({ busy: { nextDueAt: 100 } })
    await advance(100)
    busy.setRoom(0)
    await claims[1]!.find({ busy: { isFull: true } })

    expect(waker.lain).toEqual([['orders', 'busy'], ['orders']])
    expect([clock.left, claims.length]).toEqual([[5_000], 2])
  })

  test('sleeps exactly until the next message is due, and looks then', async () => {
    const { claims, clock, advance } = await started(queueOf('orders'), queueOf('mails'))
    clock.advance(700)
    await claims[0]!.find({ orders: { nextDueAt: 1_600 }, mails: { nextDueAt: 1_100 } })
    const asked = [...clock.asked]
    await advance(399)
    const before = claims.length
    await advance(1)

    expect([asked, before]).toEqual([[1_100 - 700], 1])
    expect(kindsOf(claims)).toEqual(['sweep', 'claim'])
  })

  test('a time that comes while its queue has no room is not lost', async () => {
    const { engine, orders, claims, clock, advance } = await asleep({ nextDueAt: 100 })
    orders.setRoom(0)
    await advance(100)
    const [before, left] = [claims.length, clock.left]
    orders.setRoom(1)
    engine.roomMade()
    await idle()

    expect([before, left, claims.length]).toEqual([1, [4_900], 2])
  })

  test('sleeps for the shortest pollMs.max when it will be woken, then sweeps, and so on', async () => {
    const orders = queueOf('orders', { pollMs: { min: 20, max: 700 } })
    const { claims, clock, advance } = await started(orders, queueOf('mails'))
    for (let n = 0; n < 4; n++) {
      await claims[n]!.find({ mails: { nextDueAt: clock.now() + 60_000 } })
      await advance(700)
    }

    expect(clock.asked).toEqual([700, 700, 700, 700])
    // Not because a second was over: 700 ms are less.
    expect(kindsOf(claims)).toEqual(['sweep', 'sweep', 'sweep', 'sweep', 'sweep'])
  })

  test('climbs the ladder from pollMs.min to pollMs.max when it may not be woken, anew after each find', async () => {
    const { claims, clock, waker, advance } = await started(
      queueOf('orders', { pollMs: { min: 20, max: 100 } }),
    )
    waker.isSafe = false
    const findsSomething = [true, false, false, false, false, true, false]
    for (const [n, finds] of findsSomething.entries()) {
      await claims[n]!.find(finds ? { orders: { held: [leased(n)] } } : {})
      await advance(clock.left[0]!)
    }

    // Less a fifth: half of the 40 % that chance may take.
    expect(clock.asked).toEqual([20, 40, 80, 100, 100, 20, 40].map((ms) => ms * 0.8))
  })

  test('a freed slot does not wake it when its queue is known to have no more', async () => {
    const { engine, claims, clock } = await asleep()
    engine.roomMade()
    await idle()

    expect([claims.length, clock.asked]).toEqual([1, [5_000]])
  })

  test('a freed slot wakes it when its queue may have more, and has room enough to want it', async () => {
    const { engine, orders, claims, advance } = await asleep({ nextDueAt: 100 })
    orders.dispatcher.wantsMore = false
    await advance(100)
    engine.roomMade()
    await idle()
    const before = claims.length
    orders.dispatcher.wantsMore = true
    engine.roomMade()
    await idle()

    expect([before, claims.length]).toEqual([1, 2])
  })
})

describe('notifications', () => {
  test('one for a sleeper makes it look at once, with a sweep', async () => {
    const { engine, claims, clock } = await asleep()
    engine.notified('orders')
    await idle()

    expect([kindsOf(claims), clock.now()]).toEqual([['sweep', 'sweep'], 0])
  })

  test('one for a queue that is not served wakes nobody', async () => {
    const { engine, claims, clock } = await asleep()
    engine.notified('mails')
    await idle()

    expect([claims.length, clock.asked]).toEqual([1, [5_000]])
  })

  test('one during a sweep is not lost: the next turn looks again, with a sweep', async () => {
    const { engine, claims } = await started(queueOf('orders'))
    engine.notified('orders')
    await claims[0]!.find()

    expect(kindsOf(claims)).toEqual(['sweep', 'sweep'])
  })

  test('one during a claim is not lost: the next turn looks again, with a sweep', async () => {
    const { engine, claims, advance } = await asleep({ nextDueAt: 100 })
    await advance(100)
    engine.notified('orders')
    await claims[1]!.find()

    expect(kindsOf(claims)).toEqual(['sweep', 'claim', 'sweep'])
  })

  test('one while it lies down is not lost: it looks again instead of sleeping', async () => {
    const { engine, claims, clock, waker } = await started(queueOf('orders'))
    waker.meanwhile = async () => engine.notified('orders')
    await claims[0]!.find()

    expect([kindsOf(claims), clock.asked]).toEqual([['sweep', 'sweep'], []])
  })

  test('one after it has lain down is not lost: it looks again instead of sleeping', async () => {
    const reach: Failpoint['reach'] = async (name) => {
      if (name === 'before_sleep') engine.notified('orders')
    }
    const { engine, claims, clock, run } = benchOf([queueOf('orders')], { failpoint: { reach } })
    await run()
    await claims[0]!.find()

    expect([kindsOf(claims), clock.asked]).toEqual([['sweep', 'sweep'], []])
  })
})

describe('sweeping', () => {
  test('one that is owed wakes a sleeper, and waits for its turn, behind a claim: twenty times as long as the last one took', async () => {
    const { engine, claims, clock, claimer, advance } = await asleep()
    claimer.sweepMs = 10
    engine.oweSweep()
    await idle()
    await claims[1]!.find()
    const left = clock.left
    await advance(200)

    expect([left, kindsOf(claims)]).toEqual([[200], ['sweep', 'claim', 'sweep']])
  })

  // Under a backlog a sweep is owed most of the time, and slots are freed thousands of times a second.
  test('a freed slot does not wake a sleeper whose sweep is owed and not yet allowed', async () => {
    const { engine, clock, claimer, claims, waker } = await asleep()
    claimer.sweepMs = 10
    engine.oweSweep()
    await idle()
    await claims[1]!.find()
    const before = [...clock.asked]
    engine.roomMade()
    await idle()

    expect([before, clock.asked]).toEqual([
      [5_000, 200],
      [5_000, 200],
    ])
    expect(waker.lain.length).toBe(2)
  })

  test('while looks go on, the first after a second is a sweep', async () => {
    const { claims, claimer, advance } = await started(queueOf('orders'))
    await claims[0]!.find({ orders: { nextDueAt: 1 } })
    claimer.sweepMs = 10
    await advance(1)
    await claims[1]!.find({ orders: { isFull: true } })
    await advance(999)
    await claims[2]!.find({ orders: { isFull: true } })

    expect(kindsOf(claims)).toEqual(['sweep', 'claim', 'claim', 'sweep'])
  })

  test('one that came back full is made again before it sleeps', async () => {
    const { claims, claimer, clock, advance } = await started(queueOf('orders'))
    claimer.sweepMs = 10
    await claims[0]!.find({ orders: { isFull: true } })
    await claims[1]!.find()
    const left = clock.left
    await advance(200)

    expect([left, kindsOf(claims)]).toEqual([[200], ['sweep', 'claim', 'sweep']])
  })

  test('one that was not yet allowed when it slept, and could not claim, is made when it can', async () => {
    const { engine, claims, claimer, settler, advance } = await asleep()
    claimer.sweepMs = 10
    settler.isStuck = true
    engine.oweSweep()
    await advance(100)
    settler.isStuck = false
    engine.roomMade()
    await advance(100)

    expect(kindsOf(claims)).toEqual(['sweep', 'sweep'])
  })

  test.each<[string, (engine: Engine) => void]>([
    ['somebody published to it', (engine) => engine.notified('mails')],
    ['something may have been committed without a word', (engine) => engine.oweSweep()],
  ])('one that is owed because %s is not over for a queue that had no room for it', async (_, owe) => {
    const mails = queueOf('mails')
    const { engine, claims } = await started(queueOf('orders'), mails)
    await claims[0]!.find()
    mails.setRoom(0)
    owe(engine)
    await idle()
    await claims[1]!.find()
    mails.setRoom(1)
    engine.roomMade()
    await idle()
    for (let n = 2; n < claims.length; n++) await claims[n]!.find()

    const asked = claims.slice(1).map(({ kind, demands }) => [kind, demands.map(({ queue }) => queue)])
    expect(asked[0]).toEqual(['sweep', ['orders']])
    expect(asked).toContainEqual(['sweep', ['orders', 'mails']])
  })

  test('one that a queue missed waits for its turn, too: a claim comes first', async () => {
    const mails = queueOf('mails')
    const { engine, claims, claimer, clock, advance } = await started(queueOf('orders'), mails)
    claimer.sweepMs = 10
    await claims[0]!.find()
    mails.setRoom(0)
    engine.notified('mails')
    await advance(200)
    await claims[1]!.find()
    mails.setRoom(1)
    engine.roomMade()
    await idle()
    await claims[2]!.find()
    const left = clock.left
    await advance(200)

    expect([left, kindsOf(claims)]).toEqual([[200], ['sweep', 'sweep', 'claim', 'sweep']])
  })
})
