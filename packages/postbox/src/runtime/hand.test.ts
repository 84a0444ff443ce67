import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Settlement } from '../core/settlement.ts'
import { resolveSubscribeOptions, type SubscribeOptions } from '../core/subscribe-options.ts'
import { createHand } from './hand.ts'
import { type Held, heldOf } from './held.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

function leased(seq: string, queue = 'orders'): Held {
  const fixed = { token: 'token', id: `id-${seq}`, queue, key: null, body: new Uint8Array(0), headers: {} }
  const rest = { attempt: 2, deliveries: 3, createdAt: new Date(0), generation: null }
  return heldOf({ ...fixed, ...rest, seq }, 30_000, 0)
}

/** Resolves when everything that could run without waiting has run. */
const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

interface Asked {
  readonly settlement: Settlement
  readonly maxBatch: number
  /** It is written. */
  done(): Promise<void>
}

/** A hand whose settler writes when it is told to. */
function handOf(options: Readonly<Record<string, SubscribeOptions>> = {}) {
  const asked: Asked[] = []
  const told = { emptied: 0, lost: 0 }
  const putBack: [string, number][] = []
  const hand = createHand({
    settler: {
      settle: (settlement, maxBatch) =>
        new Promise((resolve) => {
          const done = (): Promise<void> => {
            resolve()
            return idle()
          }
          asked.push({ settlement, maxBatch, done })
        }),
      countLost: () => {
        told.lost++
      },
    },
    settingsOf: (queue) => resolveSubscribeOptions(options[queue]),
    putBack: (queue, delayMs) => putBack.push([queue, delayMs]),
    emptied: () => {
      told.emptied++
    },
  })
  return { hand, asked, told, putBack }
}

const ack = { kind: 'ack' } as const

describe('createHand', () => {
  test('holds what was claimed until what became of it is written', async () => {
    const { hand, asked } = handOf()
    const [first, second] = [leased('1'), leased('2')]
    hand.hold([first, second])
    hand.finished(first, ack)
    await idle()
    const before = [...hand.held]
    await asked[0]!.done()

    expect([before, [...hand.held]]).toEqual([[first, second], [second]])
  })

  test('a message whose handler succeeded is deleted', () => {
    const { hand, asked } = handOf()
    const one = leased('1')
    hand.finished(one, ack)

    expect(asked.map(({ settlement }) => settlement)).toEqual([{ write: 'delete', lease: one.lease }])
  })

  test('a message whose handler failed is put back, by chance somewhere in its delay', () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.5)
    const { hand, asked } = handOf()
    const one = leased('1')
    const error = new TypeError('bad')
    hand.finished(one, { kind: 'fail', error })

    expect(asked.map(({ settlement }) => settlement)).toEqual([
      { write: 'reschedule', lease: one.lease, delayMs: 1_500, error: expect.any(String), thrown: error },
    ])
  })

  test('a message that was never started is released', () => {
    const { hand, asked } = handOf()
    const one = leased('1')
    hand.unstarted(one)

    expect(asked.map(({ settlement }) => settlement)).toEqual([{ write: 'release', lease: one.lease }])
  })

  test.each<[string, (hand: ReturnType<typeof createHand>, one: Held) => void]>([
    ['finished', (hand, one) => hand.finished(one, ack)],
    ['failed', (hand, one) => hand.finished(one, { kind: 'fail', error: new Error('late') })],
    ['was not started', (hand, one) => hand.unstarted(one)],
  ])('nothing is written for a message that was lost and %s: it is counted and let go of', async (_, end) => {
    const { hand, asked, told } = handOf()
    const one = leased('1')
    hand.hold([one])
    one.isLost = true
    end(hand, one)
    await idle()

    expect([asked, hand.held.size, told]).toEqual([[], 0, { emptied: 1, lost: 1 }])
  })

  test('the settler is told how many its subscription lets one statement write: 1 when each is flushed alone, but not when they are given back', () => {
    const { hand, asked } = handOf({
      orders: { maxBatch: 7 },
      mails: { flush: 'each', maxBatch: 7 },
      logs: {},
    })
    for (const queue of ['orders', 'mails', 'logs']) hand.finished(leased('1', queue), ack)
    hand.unstarted(leased('2', 'mails'))

    expect(asked.map(({ maxBatch }) => maxBatch)).toEqual([7, 1, 1_000, 7])
  })

  test('untilEmpty resolves at once when nothing is held', async () => {
    await expect(handOf().hand.untilEmpty()).resolves.toBeUndefined()
  })

  test('untilEmpty resolves when the last one is written, for all who wait, and not before', async () => {
    const { hand, asked } = handOf()
    const [first, second] = [leased('1'), leased('2')]
    hand.hold([first, second])
    const empties: string[] = []
    void hand.untilEmpty().then(() => empties.push('one'))
    void hand.untilEmpty().then(() => empties.push('other'))
    hand.finished(first, ack)
    hand.finished(second, ack)
    await asked[0]!.done()
    const before = [...empties]
    await asked[1]!.done()

    expect([before, empties]).toEqual([[], ['one', 'other']])
  })

  test('tells each time that it became empty, and only then', async () => {
    const { hand, asked, told } = handOf()
    const [first, second, third] = [leased('1'), leased('2'), leased('3')]
    hand.hold([first, second])
    hand.finished(first, ack)
    hand.unstarted(second)
    await asked[0]!.done()
    const before = told.emptied
    await asked[1]!.done()
    const between = told.emptied
    hand.hold([third])
    hand.finished(third, ack)
    await asked[2]!.done()

    expect([before, between, told.emptied]).toEqual([0, 1, 2])
  })

  test('says when a message that failed is due again, once that is written', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const { hand, asked, putBack } = handOf()
    const [failed, acked] = [leased('1'), leased('2')]
    hand.hold([failed, acked])
    hand.finished(failed, { kind: 'fail', error: new Error('not yet') })
    hand.finished(acked, ack)
    await idle()
    const before = [...putBack]
    for (const { done } of asked) await done()
    vi.restoreAllMocks()

    expect([before, putBack]).toEqual([[], [['orders', 1_000]]])
  })
})
