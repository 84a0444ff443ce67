import { describe, expect, test } from 'vitest'
import { resolveSubscribeOptions, type SubscribeOptions } from '../core/subscribe-options.ts'
import { createBoard } from './board.ts'
import type { Found } from './claimer.ts'
import type { Dispatcher } from './dispatcher.ts'
import { type Held, heldOf } from './held.ts'

/** A subscription to one queue, or to several, with as much room as the test says. */
interface Queue {
  readonly name: string | readonly string[]
  readonly options?: SubscribeOptions
  room?: number
  wantsMore?: boolean
  waiting?: number
}

function dispatcherOf(queue: Queue) {
  const taken: Held[] = []
  const settings = resolveSubscribeOptions(queue.options)
  const dispatcher = {
    subscription: { queues: [queue.name].flat(), settings, rules: { queues: null } },
    get room() {
      return queue.room ?? 10
    },
    get wantsMore() {
      return queue.wantsMore ?? true
    },
    get waiting() {
      return queue.waiting ?? 0
    },
    givenBack: [] as string[],
    giveBack: (name: string) => void dispatcher.givenBack.push(name),
    closed: 0,
    take: (claimed: readonly Held[]) => void taken.push(...claimed),
    close() {
      dispatcher.closed++
    },
  }
  return { dispatcher, taken }
}

function boardOf(...queues: Queue[]) {
  const board = createBoard()
  const served = queues.map(dispatcherOf)
  for (const { dispatcher } of served) board.add(dispatcher as unknown as Dispatcher)
  return { board, served }
}

function leased(seq: string): Held {
  const fixed = { token: 'token', id: `id-${seq}`, queue: 'orders', key: null, body: new Uint8Array(0) }
  const rest = { headers: {}, attempt: 1, deliveries: 1, createdAt: new Date(0), generation: null }
  const timing = { timerId: null, firstAttemptAt: null, claimedAt: new Date(0) }
  return heldOf({ ...fixed, ...rest, ...timing, seq }, 30_000, 0)
}

const foundIn = (queue: string, found: Partial<Found> = {}): Found => ({
  queue,
  held: [],
  isFull: false,
  nextDueAt: null,
  pause: null,
  ...found,
})

describe('createBoard', () => {
  test('a queue that was added may have something', () => {
    const { board } = boardOf({ name: 'orders' })

    expect([board.size, board.wantsLook, board.exhausted()]).toEqual([1, true, []])
  })

  test('demands ask for all queues that have room, and for no other', () => {
    const { board } = boardOf(
      { name: 'orders', room: 3 },
      { name: 'full', room: 0 },
      { name: 'mails', room: 5, options: { leaseMs: 60_000 } },
    )

    expect(board.demands(false)).toEqual([
      { queue: 'orders', room: 3, leaseMs: 30_000 },
      { queue: 'mails', room: 5, leaseMs: 60_000 },
    ])
  })

  test('demands ask for a queue with room though it is not known to have more', () => {
    const { board } = boardOf({ name: 'orders' }, { name: 'mails' })
    board.demands(false)
    board.notified('orders')

    expect(board.demands(false).map(({ queue }) => queue)).toEqual(['orders', 'mails'])
  })

  test('a queue that was asked has no more, one that had no room may', () => {
    const { board } = boardOf({ name: 'orders' }, { name: 'full', room: 0 })
    board.demands(false)

    expect(board.exhausted()).toEqual(['orders'])
  })

  test('a full claim leaves a queue that may have more, one that is not full does not', () => {
    const { board } = boardOf({ name: 'orders' }, { name: 'mails' })
    board.demands(false)
    board.take([foundIn('orders', { isFull: true }), foundIn('mails')])

    expect(board.exhausted()).toEqual(['mails'])
  })

  test('a notification while a claim is under way outlives an answer that is not full', () => {
    const { board } = boardOf({ name: 'orders' })
    board.demands(false)
    board.notified('orders')
    board.take([foundIn('orders')])

    expect([board.wantsLook, board.exhausted()]).toEqual([true, []])
  })

  test('a notification for a queue that is not served changes nothing', () => {
    const { board } = boardOf({ name: 'orders' })
    board.demands(false)

    expect([board.notified('mails'), board.wantsLook]).toEqual([false, false])
    expect([board.notified('orders'), board.wantsLook]).toEqual([true, true])
  })

  test('wants a look only when one and the same queue may have more and wants it', () => {
    const mails: Queue = { name: 'mails', room: 0, wantsMore: false }
    const { board } = boardOf({ name: 'orders' }, mails)
    board.demands(false)
    const before = board.wantsLook
    mails.wantsMore = true

    expect([before, board.wantsLook]).toEqual([false, true])
  })

  test('has room when any queue has', () => {
    const mails: Queue = { name: 'mails', room: 0 }
    const { board } = boardOf({ name: 'orders', room: 0 }, mails)
    const before = board.hasRoom
    mails.room = 1

    expect([before, board.hasRoom]).toEqual([false, true])
  })

  test('a queue that had no room for a sweep has missed it, as soon as it has room, until the next one', () => {
    const mails: Queue = { name: 'mails', room: 0 }
    const { board } = boardOf({ name: 'orders' }, mails)
    const missed: boolean[] = []
    const look = (isSweep: boolean, room: number): void => {
      board.demands(isSweep)
      mails.room = room
      missed.push(board.missedSweep)
    }
    look(false, 1)
    mails.room = 0
    look(true, 0)
    look(false, 1)
    look(false, 1)
    look(true, 1)

    expect(missed).toEqual([false, false, true, true, false])
  })

  test('each queue gets what was found in it, in its order', () => {
    const { board, served } = boardOf({ name: 'orders' }, { name: 'mails' })
    const [first, second, third] = ['9', '10', '11'].map(leased) as [Held, Held, Held]
    board.take([foundIn('mails', { held: [second] }), foundIn('orders', { held: [third, first] })])

    expect(served.map(({ taken }) => taken)).toEqual([[third, first], [second]])
  })

  test('after a fault every queue may have more', () => {
    const { board } = boardOf({ name: 'orders' }, { name: 'mails' })
    board.demands(false)
    board.mayAllHaveMore()

    expect(board.exhausted()).toEqual([])
  })

  test('the next due time is the earliest of all queues, never when nothing waits', () => {
    const { board } = boardOf({ name: 'orders' }, { name: 'mails' }, { name: 'none' })
    const before = board.nextDueAt()
    board.take([foundIn('orders', { nextDueAt: 900 }), foundIn('mails', { nextDueAt: 700 }), foundIn('none')])

    expect([before, board.nextDueAt()]).toEqual([Number.POSITIVE_INFINITY, 700])
  })

  test('a claim that sees nothing waiting any more takes the due time away', () => {
    const { board } = boardOf({ name: 'orders' })
    board.take([foundIn('orders', { nextDueAt: 900 })])
    board.take([foundIn('orders')])

    expect(board.nextDueAt()).toBe(Number.POSITIVE_INFINITY)
  })

  test('when a time has come, the queues that waited for it may have more, once', () => {
    const { board } = boardOf({ name: 'orders' }, { name: 'mails' })
    board.demands(false)
    board.take([foundIn('orders', { nextDueAt: 900 }), foundIn('mails', { nextDueAt: 700 })])
    board.timeHasCome(699)
    const before = board.exhausted()
    board.timeHasCome(700)

    expect([before, board.exhausted()]).toEqual([['orders', 'mails'], ['orders']])
    expect(board.nextDueAt()).toBe(900)
  })

  test('the pace is that of the most eager queue, and an hour without queues', () => {
    const { board } = boardOf(
      { name: 'orders', options: { pollMs: { min: 50, max: 1_000 } } },
      { name: 'mails', options: { pollMs: { min: 10, max: 60_000 } } },
    )

    expect(board.pollMs()).toEqual({ min: 10, max: 1_000 })
    expect(createBoard().pollMs()).toEqual({ min: 3_600_000, max: 3_600_000 })
  })

  test('closing closes every queue', () => {
    const { board, served } = boardOf({ name: 'orders' }, { name: 'mails' })
    board.close()

    expect(served.map(({ dispatcher }) => dispatcher.closed)).toEqual([1, 1])
  })
})

describe('queues that share a subscription', () => {
  const three = ['orders', 'mails', 'labels']

  test('are served one by one: each has its own word for whether it may have more', () => {
    const { board } = boardOf({ name: three })
    board.demands(false)
    board.notified('mails')

    expect([board.size, board.wantsLook, board.exhausted()]).toEqual([3, true, ['orders', 'labels']])
  })

  test.each([
    [9, 3],
    [10, 4],
    [1, 1],
  ])('share a room of %i, rounded up: %i for each', (room, share) => {
    const { board } = boardOf({ name: three, room, options: { leaseMs: 60_000 } })

    expect(board.demands(false)).toEqual(three.map((queue) => ({ queue, room: share, leaseMs: 60_000 })))
  })

  test('ask for nothing when there is no room, and have all missed the sweep', () => {
    const queues: Queue = { name: three, room: 0 }
    const { board } = boardOf(queues)
    const asked = board.demands(true)
    queues.room = 1

    expect([asked, board.missedSweep, board.exhausted()]).toEqual([[], true, []])
  })

  test('give all that was found to the one who serves them', () => {
    const { board, served } = boardOf({ name: three }, { name: 'other' })
    const [first, second, third] = ['1', '2', '3'].map(leased) as [Held, Held, Held]
    board.take([
      foundIn('orders', { held: [first] }),
      foundIn('other', { held: [second] }),
      foundIn('labels', { held: [third] }),
    ])

    expect(served.map(({ taken }) => taken)).toEqual([[first, third], [second]])
  })

  test('wait each for their own time', () => {
    const { board } = boardOf({ name: three })
    board.demands(false)
    board.dueAt('mails', 700)
    board.dueAt('labels', 900)
    board.timeHasCome(700)

    expect([board.exhausted(), board.nextDueAt()]).toEqual([['orders', 'labels'], 900])
  })

  test('are closed together, once', () => {
    const { board, served } = boardOf({ name: three })
    board.close()

    expect(served.map(({ dispatcher }) => dispatcher.closed)).toEqual([1])
  })
})

describe('a paused queue', () => {
  test('gives back what was not started, and neither a notification nor a due time is worth a look', () => {
    const { board, served } = boardOf({ name: ['orders', 'mails'] })
    board.demands(true)
    board.take([foundIn('orders', { nextDueAt: 5 }), foundIn('mails', { nextDueAt: 7 })])

    board.pause('orders')
    board.dueAt('orders', 3)

    expect(served[0]?.dispatcher.givenBack).toEqual(['orders'])
    expect(board.notified('orders')).toBe(false)
    expect(board.wantsLook).toBe(false)
    expect(board.nextDueAt()).toBe(7)
    expect(board.exhausted()).toEqual(['mails'])
    expect(board.notified('mails')).toBe(true)
  })

  test('may have anything when it is resumed', () => {
    const { board } = boardOf({ name: 'orders' })
    board.demands(true)
    board.pause('orders')

    board.resume('orders')

    expect(board.wantsLook).toBe(true)
    expect(board.notified('orders')).toBe(true)
    board.dueAt('orders', 3)
    expect(board.nextDueAt()).toBe(3)
  })

  test('that nobody serves here changes nothing', () => {
    const { board, served } = boardOf({ name: 'orders' })

    board.pause('mails')
    board.resume('mails')

    expect(served[0]?.dispatcher.givenBack).toEqual([])
    expect(board.queues()).toEqual(['orders'])
  })

  test('is watched, and so are those of which something waits to be started', () => {
    const mails = { name: 'mails', waiting: 0 }
    const { board } = boardOf({ name: 'orders' }, mails, { name: 'bills' })
    expect(board.watched()).toEqual([])

    board.pause('bills')
    mails.waiting = 2

    expect(board.watched()).toEqual(['mails', 'bills'])
  })
})
