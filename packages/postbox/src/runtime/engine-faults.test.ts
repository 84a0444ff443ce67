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
import { recordedEvents } from '../../../../tests/support/recorded-events.ts'
import { subscriptionOf } from '../../../../tests/support/runner-bench.ts'
import type { Handler } from '../core/handler.ts'
import { resolveSubscribeOptions } from '../core/subscribe-options.ts'
import { createBreath } from './breath.ts'
import type { DeliveryTools } from './deliver.ts'
import { createDispatcher } from './dispatcher.ts'
import { createGate } from './gate.ts'
import type { Held } from './held.ts'
import { createSignals } from './signals.ts'

beforeEach(() => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
})

afterEach(() => {
  vi.restoreAllMocks()
})

const lost = new Error('connection lost')

describe('when settlements cannot be written', () => {
  test('nothing is claimed while the settler is stuck, and it goes on when it no longer is', async () => {
    const { engine, claims, settler, run } = benchOf([queueOf('orders')])
    settler.isStuck = true
    await run()
    engine.notified('orders')
    engine.roomMade()
    await idle()
    const before = claims.length
    settler.isStuck = false
    engine.roomMade()
    await idle()

    expect([before, claims.length]).toEqual([0, 1])
  })

  test('a full claim is not followed by another while the settler is stuck', async () => {
    const { claims, settler } = await started(queueOf('orders'))
    settler.isStuck = true
    await claims[0]!.find({ orders: { isFull: true } })

    expect(claims.length).toBe(1)
  })

  test('a time that comes while the settler is stuck is not lost, and does not keep it awake', async () => {
    const { engine, claims, settler, clock, advance } = await asleep({ nextDueAt: 100 })
    settler.isStuck = true
    await advance(100)
    const before = [claims.length, clock.left]
    settler.isStuck = false
    engine.roomMade()
    await idle()

    expect([before, claims.length]).toEqual([[1, [4_900]], 2])
  })

  test('nothing is claimed while more than 2,000 settlements wait, and it goes on at 2,000', async () => {
    const { engine, claims, settler, run } = benchOf([queueOf('orders')])
    settler.waiting = 2_001
    await run()
    engine.roomMade()
    await idle()
    const before = claims.length
    settler.waiting = 2_000
    engine.roomMade()
    await idle()

    expect([before, claims.length]).toEqual([0, 1])
  })
})

describe('a claim that fails', () => {
  test('is told of and tried again, ever later, until one succeeds', async () => {
    const { engine, claims, clock, told, advance } = await started(queueOf('orders'))
    const failures: number[] = []
    for (let n = 0; n < 4; n++) {
      await claims[n]!.fail(lost)
      failures.push(engine.failures)
      await advance(clock.left[0]!)
    }
    await claims[4]!.find()

    expect(clock.asked.slice(0, 4)).toEqual([75, 150, 300, 600])
    expect(told.slice(0, 4)).toEqual(
      [75, 150, 300, 600].map((delayMs) => ({ kind: 'claim_failed', error: lost, delayMs })),
    )
    expect([failures, engine.failures]).toEqual([[1, 2, 3, 4], 0])
  })

  test('the delays begin anew after one that succeeded', async () => {
    const { engine, claims, clock, advance } = await started(queueOf('orders'))
    for (const n of [0, 1]) {
      await claims[n]!.fail(lost)
      await advance(clock.left[0]!)
    }
    await claims[2]!.find()
    engine.notified('orders')
    await idle()
    await claims[3]!.fail(lost)

    expect(clock.left).toEqual([75])
  })

  test('neither a freed slot nor a notification cuts the delay short', async () => {
    const { engine, claims, advance } = await started(queueOf('orders'))
    await claims[0]!.fail(lost)
    engine.roomMade()
    engine.notified('orders')
    engine.oweSweep()
    await advance(74)
    const before = claims.length
    await advance(1)

    expect([before, claims.length]).toEqual([1, 2])
  })

  test('is followed by a sweep of everything', async () => {
    const { claims, advance } = await asleep({ nextDueAt: 100 })
    await advance(100)
    await claims[1]!.fail(lost)
    await advance(75)

    expect(kindsOf(claims)).toEqual(['sweep', 'claim', 'sweep'])
  })

  test('is made good by a claim first, where a sweep is not yet allowed', async () => {
    const { claims, claimer, clock, advance } = await asleep({ nextDueAt: 100 })
    claimer.sweepMs = 100
    await advance(100)
    await claims[1]!.fail(lost)
    await advance(75)
    await claims[2]!.find()
    const left = clock.left
    await advance(left[0]!)

    expect(kindsOf(claims)).toEqual(['sweep', 'claim', 'claim', 'sweep'])
    expect(left).toEqual([2_000 - 175])
  })
})

describe('when it is halted', () => {
  test('a sleeper gets up for good and ends at once, and claims nothing more', async () => {
    const { engine, halt, claims, clock, waker, state } = await asleep()
    const before = [waker.isClosed, state.isOver]
    halt.abort()
    await idle()
    const after = [waker.isClosed, state.isOver]
    engine.notified('orders')
    await idle()

    expect([before, after]).toEqual([
      [false, false],
      [true, true],
    ])
    expect([claims.length, clock.left]).toEqual([1, []])
  })

  test('the delay after a failure ends at once', async () => {
    const { halt, claims, clock, state } = await started(queueOf('orders'))
    await claims[0]!.fail(lost)
    halt.abort()
    await idle()

    expect([state.isOver, claims.length, clock.left]).toEqual([true, 1, []])
  })

  test('one that is about to sleep does not', async () => {
    const { halt, claims, clock, waker, state } = await started(queueOf('orders'))
    waker.meanwhile = async () => halt.abort()
    await claims[0]!.find()

    expect([state.isOver, clock.asked]).toEqual([true, []])
  })

  test('what a claim under way brings is held and given back, and no other claim follows', async () => {
    const unstarted: string[] = []
    const handled: string[] = []
    const bench = benchOf([])
    const { clock } = bench
    const settings = resolveSubscribeOptions({ concurrency: 2 })
    const handler: Handler = ({ seq }) => void handled.push(seq)
    const desk = { finished: () => {}, unstarted: ({ lease }: Held) => void unstarted.push(lease.seq) }
    const dispatcher = createDispatcher(subscriptionOf({ run: { kind: 'each', handler }, settings }), {
      tools: { clock, ...recordedEvents() } as unknown as DeliveryTools,
      signals: createSignals(new AbortController().signal),
      desk,
      keySettled: () => {},
      gate: createGate(clock, new AbortController().signal),
      breath: createBreath(clock),
      count: async () => true,
      roomMade: () => {},
    })
    bench.engine.add(dispatcher)
    await bench.run()
    bench.halt.abort()
    await idle()
    const before = bench.state.isOver
    await bench.claims[0]!.find({ orders: { held: [leased(1), leased(2)], isFull: true } })

    expect([handled, unstarted, bench.held.size]).toEqual([[], ['1', '2'], 2])
    expect([before, bench.state.isOver, bench.claims.length]).toEqual([false, true, 1])
  })

  test('a claim under way that fails is not tried again', async () => {
    const { halt, claims, state } = await started(queueOf('orders'))
    halt.abort()
    await claims[0]!.fail(lost)

    expect([state.isOver, claims.length]).toEqual([true, 1])
  })
})

describe('untilEmpty', () => {
  /** Whether it has resolved, from now on. */
  function emptyOf(engine: { untilEmpty(): Promise<void> }) {
    const empty = { isTold: false }
    void engine.untilEmpty().then(() => {
      empty.isTold = true
    })
    return empty
  }

  test('resolves at once without queues', async () => {
    await expect(benchOf([]).engine.untilEmpty()).resolves.toBeUndefined()
  })

  test('resolves after a sweep that found nothing in any queue, for all who wait', async () => {
    const { engine, claims } = await asleep()
    const empties = [emptyOf(engine), emptyOf(engine)]
    await idle()
    const before = empties.map(({ isTold }) => isTold)
    await claims[1]!.find()

    expect([before, empties.map(({ isTold }) => isTold)]).toEqual([
      [false, false],
      [true, true],
    ])
    expect(kindsOf(claims)).toEqual(['sweep', 'sweep'])
  })

  test('has sweeps begin a round when somebody asks, and again when nothing is in hand any more, while somebody waits', async () => {
    const { engine, claims, claimer } = await asleep()
    engine.emptied()
    const rounds = [claimer.rounds]
    emptyOf(engine)
    rounds.push(claimer.rounds)
    engine.emptied()
    rounds.push(claimer.rounds)
    await idle()
    for (let n = 1; n < claims.length; n++) await claims[n]!.find()
    engine.emptied()

    expect([...rounds, claimer.rounds]).toEqual([0, 1, 2, 2])
  })

  test('a claim from the cursors that finds nothing is not enough', async () => {
    const { engine, claims, claimer, advance } = await asleep()
    claimer.sweepMs = 10
    const empty = emptyOf(engine)
    await idle()
    await claims[1]!.find()
    const before = empty.isTold
    await advance(200)
    await claims[2]!.find()

    expect([kindsOf(claims), before, empty.isTold]).toEqual([['sweep', 'claim', 'sweep'], false, true])
  })

  test('a sweep that found something is not enough, nor is one while something is in hand', async () => {
    const { engine, claims, held } = await asleep()
    const empty = emptyOf(engine)
    await idle()
    await claims[1]!.find({ orders: { held: [leased(1)] } })
    engine.notified('orders')
    await idle()
    await claims[2]!.find()
    const before = empty.isTold
    held.clear()
    engine.emptied()
    await idle()
    await claims[3]!.find()

    expect([before, empty.isTold, claims.length]).toEqual([false, true, 4])
  })

  test('a sweep that was sent while something was in hand is not enough, though nothing is when it ends', async () => {
    const { engine, claims, held } = await asleep()
    held.add(leased(1))
    const empty = emptyOf(engine)
    await idle()
    held.clear()
    engine.emptied()
    await claims[1]!.find()
    const before = empty.isTold
    await claims[2]!.find()

    expect([before, empty.isTold]).toEqual([false, true])
  })

  test('a sweep that left a queue out is not enough', async () => {
    const mails = queueOf('mails')
    const { engine, claims } = await started(queueOf('orders'), mails)
    await claims[0]!.find()
    mails.setRoom(0)
    const empty = emptyOf(engine)
    await idle()
    await claims[1]!.find()
    const before = empty.isTold
    mails.setRoom(1)
    engine.emptied()
    await idle()
    await claims[2]!.find()

    expect([before, empty.isTold]).toEqual([false, true])
  })

  test('a sweep that was sent before it was asked is not enough: what was committed since is not in it', async () => {
    const { engine, claims } = await started(queueOf('orders'))
    const empty = emptyOf(engine)
    await claims[0]!.find()
    const before = empty.isTold
    await claims[1]!.find()

    expect([before, empty.isTold]).toEqual([false, true])
  })

  test('nobody is woken by an empty hand when nobody waits for it', async () => {
    const { engine, claims, clock } = await asleep()
    engine.emptied()
    await idle()

    expect([claims.length, clock.asked]).toEqual([1, [5_000]])
  })
})
