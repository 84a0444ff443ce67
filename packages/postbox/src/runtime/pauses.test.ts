import { describe, expect, test } from 'vitest'
import { asleep, idle, kindsOf, leased, queueOf, started } from '../../../../tests/support/engine-bench.ts'
import type { Pause } from '../sql/pause-state.ts'
import type { Board } from './board.ts'
import { createPauses, type ToldPause } from './pauses.ts'

const paused: Pause = { isPaused: true, by: 'jo', at: new Date(1) }
const resumed: Pause = { isPaused: false, by: 'ann', at: new Date(2) }
const mismatch: Pause = { isPaused: true, by: null, at: new Date(0), isMismatch: true }
const of = (queue: string, pause: Pause | null): ToldPause => ({ queue, pause })

function benchOf(watched: readonly string[] = []) {
  const done: string[] = []
  const told: object[] = []
  const clock = { time: 0, now: () => clock.time }
  const answers: ToldPause[][] = []
  const asked: (readonly string[])[] = []
  const board = {
    queues: () => ['orders', 'mails'],
    watched: () => watched,
    pause: (queue: string) => void done.push(`pause ${queue}`),
    resume: (queue: string) => void done.push(`resume ${queue}`),
  } satisfies Partial<Board>
  const pauses = createPauses({
    clock,
    names: { queues: 'outbox_queues' },
    board,
    teller: { tell: (event) => void told.push(event), isHeard: true },
    async ask(queues) {
      asked.push(queues)
      return answers.shift() ?? []
    },
    paused: (queue) => void done.push(`paused ${queue}`),
    resumed: (queue) => void done.push(`resumed ${queue}`),
  })
  return { pauses, done, told, clock, answers, asked }
}

describe('what is known of pauses', () => {
  test('a pause and its end are acted on and told once, however often they are heard of', () => {
    const { pauses, done, told } = benchOf()
    for (const pause of [null, paused, paused, resumed, resumed])
      pauses.learn([of('orders', pause), of('mails', null)], 0)

    expect(done).toEqual(['pause orders', 'paused orders', 'resume orders', 'resumed orders'])
    expect(told).toEqual([
      { kind: 'queue_paused', queue: 'orders', by: 'jo', at: paused.at },
      { kind: 'queue_resumed', queue: 'orders', by: 'ann', at: resumed.at },
    ])
  })

  test('a queue that was resumed before this process began is none that it has seen paused', () => {
    const { pauses, done, told } = benchOf()
    pauses.learn([of('orders', resumed)], 0)
    expect([done, told]).toEqual([[], []])
  })

  test('one that was resumed and paused again meanwhile is told with who paused it now', () => {
    const { pauses, told } = benchOf()
    pauses.learn([of('orders', paused)], 0)
    pauses.learn([of('orders', { ...paused, by: 'ann' })], 1)
    pauses.learn([of('orders', { ...paused, by: 'ann', at: new Date(9) })], 2)
    expect(told).toMatchObject([{ by: 'jo' }, { by: 'ann', at: paused.at }, { by: 'ann', at: new Date(9) }])
  })

  test('one whose row is gone is resumed, by nobody knows whom', () => {
    const { pauses, done, told } = benchOf()
    pauses.learn([of('orders', paused)], 0)
    pauses.learn([of('orders', null)], 1)
    expect(done.slice(2)).toEqual(['resume orders', 'resumed orders'])
    expect(told[1]).toEqual({ kind: 'queue_resumed', queue: 'orders', by: null, at: null })
  })
})

describe('a queue whose order this process does not know of', () => {
  test('is left alone like one that is paused, and told by one warning; its end is told by nobody', () => {
    const { pauses, done, told } = benchOf()
    for (const pause of [null, mismatch, mismatch]) pauses.learn([of('orders', pause), of('mails', null)], 0)
    const during = pauses.mismatched()
    pauses.learn([of('orders', null)], 1)

    expect(done).toEqual(['pause orders', 'paused orders', 'resume orders', 'resumed orders'])
    expect(told).toMatchObject([
      {
        kind: 'warning',
        code: 'order_mismatch',
        fields: { queue: 'orders' },
        error: { code: 'OUTBOX_ORDER_MISMATCH', message: expect.stringContaining('outbox_queues says') },
      },
    ])
    expect([during, pauses.mismatched()]).toEqual([['orders'], []])
  })

  test('is told as paused when the order is given up while it is', () => {
    const { pauses, told } = benchOf()
    pauses.learn([of('orders', mismatch)], 0)
    pauses.learn([of('orders', paused)], 1)

    expect(told).toMatchObject([{ kind: 'warning' }, { kind: 'queue_paused', by: 'jo' }])
    expect(pauses.mismatched()).toEqual([])
  })
})

describe('asking', () => {
  test('is for when something is watched and nobody has said anything of it for almost a second', () => {
    const { pauses, clock } = benchOf(['orders', 'mails'])
    pauses.learn([of('orders', null)], 100)
    pauses.learn([of('mails', paused)], 300)
    clock.time = 500
    expect(pauses.nextLookAt()).toBe(1_000)
    pauses.learn([of('orders', null)], 600)
    expect(pauses.nextLookAt()).toBe(1_200)
  })

  test('is for never while nothing is watched', () => {
    expect(benchOf().pauses.nextLookAt()).toBe(Number.POSITIVE_INFINITY)
  })

  test('of a queue of which nothing was ever said is for soon', () => {
    const { pauses, clock } = benchOf(['orders'])
    clock.time = 50
    expect(pauses.nextLookAt()).toBe(950)
  })

  test('is for now when something has changed, again when that happens while it is under way', async () => {
    const { pauses, clock, asked, answers, done } = benchOf()
    clock.time = 7
    answers.push([of('orders', paused)])
    pauses.changed()
    expect(pauses.nextLookAt()).toBe(7)
    const looking = pauses.look()
    pauses.changed()
    await looking
    expect(done).toEqual(['pause orders', 'paused orders'])
    expect(pauses.nextLookAt()).toBe(7)

    await pauses.look()
    expect(pauses.nextLookAt()).toBe(Number.POSITIVE_INFINITY)
    expect(asked).toEqual([
      ['orders', 'mails'],
      ['orders', 'mails'],
    ])
  })
})

describe('an engine', () => {
  test('that is told of a change asks, gives back what it had not started, and lets publishers be quiet', async () => {
    const { engine, pauses, orders, waker, claims, told } = await asleep()
    pauses.of = { orders: paused }

    engine.notified('')
    await idle()

    expect(pauses.asked).toBe(1)
    expect(orders.givenBack).toEqual(['orders'])
    expect(waker.up).toContain('orders')
    expect(claims).toHaveLength(1)
    expect(told.at(-1)).toMatchObject({ kind: 'queue_paused', queue: 'orders' })
  })

  test('asks nobody while nothing is paused and nothing waits', async () => {
    const { pauses, advance } = await asleep()
    for (let second = 0; second < 4; second++) await advance(1_000)
    expect(pauses.asked).toBe(0)
  })

  test('asks each second while a queue is paused, and sweeps when it is resumed', async () => {
    const { pauses, advance, claims } = await asleep({ pause: paused })
    pauses.of = { orders: paused }
    await advance(899)
    expect(pauses.asked).toBe(0)
    await advance(1)
    await advance(900)
    expect([pauses.asked, claims.length]).toEqual([2, 1])

    pauses.of = { orders: resumed }
    await advance(900)

    expect([pauses.asked, claims.length]).toEqual([3, 2])
    expect(claims[1]?.kind).toBe('sweep')
  })

  test('sweeps when it hears of the end of a pause, however short ago the last sweep was: what was given back lies below the cursor', async () => {
    const { engine, pauses, claims } = await asleep({ pause: paused })
    pauses.of = { orders: resumed }

    engine.notified('')
    await idle()

    expect(kindsOf(claims)).toEqual(['sweep', 'sweep'])
  })

  test('polls other queues as ever while one is paused', async () => {
    const { pauses, advance, claims } = await asleep({ pause: paused })
    pauses.of = { orders: paused }

    for (let step = 0; step < 6; step++) await advance(900)

    expect(claims).toHaveLength(2)
  })

  test('asks each second while something that it has claimed waits to be started', async () => {
    const orders = queueOf('orders')
    const { pauses, advance, claims } = await started(orders)
    orders.setRoom(0)
    orders.dispatcher.waiting = 1
    await claims[0]?.find({ orders: { held: [leased(1)] } })
    await advance(900)
    expect([pauses.asked, claims.length]).toEqual([1, 1])

    orders.dispatcher.waiting = 0
    await advance(900)
    expect(pauses.asked).toBe(1)
  })

  test('is empty though a paused queue may not be', async () => {
    const { engine, claims } = await asleep({ pause: paused })
    const empty = engine.untilEmpty()
    await idle()
    await claims[1]?.find({ orders: { pause: paused } })
    await expect(empty).resolves.toBeUndefined()
  })

  test('that cannot ask says so, and tries again', async () => {
    const { engine, told, claims, pauses, advance } = await asleep()
    pauses.failure = new Error('no connection')
    engine.notified('')
    await idle()
    expect(told.at(-1)).toMatchObject({ kind: 'claim_failed' })

    pauses.failure = null
    await advance(60_000)
    expect(claims).toHaveLength(2)
  })
})
