// Where looks at an ordered queue begin, and when all of it has been seen once.
import { describe, expect, test } from 'vitest'
import type { OrderedQueue, OrderedQueueRow } from '../sql/claim-in-order.ts'
import {
  beginRounds,
  createOrderMemory,
  forgetPlaces,
  type LookKind,
  learnPlace,
  type OrderMemory,
  placeOf,
  seenBy,
  wantedOf,
} from './order-memory.ts'

const demand = { queue: 'orders', room: 10, leaseMs: 30_000, isOrdered: true }

interface Told extends Partial<OrderedQueueRow> {
  readonly found?: number
  readonly lastDueMs?: number
  readonly sentAt?: number
  /** A transaction of somebody else that has not ended; else all have. */
  readonly running?: number
}

/** One look after the other at the queue `orders`. */
function looks() {
  const memory = createOrderMemory(0)
  let own = 10
  const rowOf = (told: Partial<OrderedQueueRow>): OrderedQueueRow => {
    own++
    const fixed = { kind: 'queue', queue: 'orders', nextdue: null, now: '0', pause: null } as const
    const looked = { top: '5000', reached: null, more: 'false', lastkey: null, joining: '0' }
    const left = { leftkeys: null, leftover: 'false' }
    return { ...fixed, ...looked, ...left, own: `${own}`, snapshot: `${own}:${own}:`, ...told }
  }
  const asked = (kind: LookKind): OrderedQueue => wantedOf(placeOf(memory, 'orders'), demand, kind)
  const look = (kind: LookKind, { found = 0, lastDueMs, sentAt = 0, running, ...told }: Told = {}) => {
    const snapshot = running === undefined ? {} : { snapshot: `${running}:${own + 1}:${running}` }
    const row = rowOf({ ...snapshot, ...told })
    const wanted = asked(kind)
    const seen = seenBy(memory, row, sentAt)
    const looked = { kind, asked: wanted, row, seen, found, lastDueMs: lastDueMs ?? null }
    return learnPlace(placeOf(memory, 'orders'), looked)
  }
  const begins = () => [asked('claim').after, asked('sweep').after, asked('walk').after]
  return { memory, asked, look, begins }
}

function settle(memory: OrderMemory, ...keys: readonly string[]): void {
  for (const key of keys) placeOf(memory, 'orders').settled.set(key, '7')
}

describe('a look', () => {
  const more = { more: 'true', reached: '1000' }

  test.each([
    ['claim', ['1000', '0', '0']],
    ['sweep', ['0', '1000', '0']],
    ['walk', ['0', '0', '1000']],
  ] as const)('of one kind moves none of another: a %s', (kind, expected) => {
    const { look, begins } = looks()
    look(kind, more)
    look(kind, more)

    expect(begins()).toEqual(expected)
  })

  test('of a sweep begins at all that is due, and hops; others begin at the last that was due, and do not', () => {
    const { look, asked } = looks()
    look('claim', { lastDueMs: 20_000 })

    const begin = ({ dueFromMs, keysFrom }: OrderedQueue) => [dueFromMs, keysFrom]
    expect([begin(asked('sweep')), begin(asked('claim')), begin(asked('walk'))]).toEqual([
      [null, ''],
      [15_000, null],
      [15_000, null],
    ])
  })

  test('at what was due earlier does not bring the others back there', () => {
    const { look, asked } = looks()
    look('claim', { lastDueMs: 20_000 })
    look('sweep', { lastDueMs: 8_000 })

    expect(asked('claim').dueFromMs).toBe(15_000)
  })

  test('at a server that has given less places out is not remembered, and begins anew', () => {
    const { look, begins, asked } = looks()
    for (const kind of ['claim', 'claim', 'sweep', 'sweep'] as const)
      look(kind, { ...more, lastDueMs: 20_000 })
    expect(begins()).toEqual(['1000', '1000', '0'])
    look('claim', { ...more, top: '30', lastDueMs: 20_000 })

    expect(begins()).toEqual(['0', '0', '0'])
    expect(asked('claim').dueFromMs).toBeNull()
    // Nothing of the other server may be waited for, or counted on.
    look('claim', { top: '30' })
    look('claim', { top: '30' })
    look('claim', { top: '30' })
    expect(asked('claim').after).toBe('30')
  })

  test('of a claim gives a transaction up that has long been running, and one of a sweep does not', () => {
    const { look, begins } = looks()
    for (const sentAt of [0, 249])
      for (const kind of ['claim', 'sweep'] as const) look(kind, { ...more, sentAt, running: 5 })
    expect(begins()).toEqual(['0', '0', '0'])
    for (const kind of ['claim', 'sweep'] as const) look(kind, { ...more, sentAt: 250, running: 5 })

    expect(begins()).toEqual(['1000', '0', '0'])
  })

  test('does not take a transaction for one of the same number on the server before', () => {
    const { memory, look, begins } = looks()
    look('claim', { ...more, running: 5 })
    forgetPlaces(memory)
    for (const sentAt of [250, 260]) look('claim', { ...more, sentAt, running: 5 })

    expect(begins()).toEqual(['0', '0', '0'])
  })

  test('goes on behind settled keys from their first row when places are forgotten', () => {
    const { memory, asked } = looks()
    settle(memory, 'a')
    forgetPlaces(memory)

    expect(asked('claim').keys).toEqual([{ key: 'a', after: '0' }])
  })

  test.each([
    [1, 16],
    [40, 40],
    [5_000, 1_000],
  ])('with room for %i asks for the next of %i settled keys at most', (room, expected) => {
    const { memory } = looks()
    settle(memory, ...Array.from({ length: 2_000 }, (_, n) => `k${n}`))

    expect(wantedOf(placeOf(memory, 'orders'), { ...demand, room }, 'claim').keys).toHaveLength(expected)
  })

  test('keeps in mind those settled keys for which there was no room', () => {
    const { memory, look, asked } = looks()
    settle(memory, 'a', 'b')
    look('claim', { leftkeys: '["b"]' })

    expect(asked('claim').keys).toEqual([{ key: 'b', after: '7' }])
  })
})

describe('a round', () => {
  test('is over when the last key and the last row have been seen, each once, and begins at the first again', () => {
    const { look, asked } = looks()
    const rounds = [look('sweep', { lastkey: 'k' }), look('walk', { reached: '900' })]
    expect([asked('sweep').keysFrom, asked('walk').after]).toEqual(['k', '0'])
    rounds.push(
      // The rows have been seen: that there are more now is for the next round.
      look('walk', { more: 'true', reached: '1000' }),
      look('sweep'),
    )

    expect(rounds.map(({ isOver }) => isOver)).toEqual([false, false, false, true])
    expect([asked('sweep').keysFrom, asked('walk').after]).toEqual(['', '0'])
  })

  test('is over once, though the keys were seen long before the rows', () => {
    const { look, asked } = looks()
    const rounds = [
      look('sweep'),
      look('walk', { more: 'true', reached: '1000' }),
      look('sweep', { lastkey: 'k' }),
      look('walk'),
    ]
    expect(asked('sweep').keysFrom).toBe('')
    rounds.push(look('sweep'))

    expect(rounds.map(({ isOver }) => isOver)).toEqual([false, false, false, true, false])
  })

  test('is empty when nothing was found since it began, whatever was found before', () => {
    const { look } = looks()
    look('claim', { found: 3 })
    look('claim', { joining: '1' })
    look('sweep')

    expect(look('walk')).toEqual({ isOver: true, isEmpty: true })
  })

  test.each([
    ['a claim finds something', 'claim', { found: 1 }],
    ['a sweep finds something', 'sweep', { found: 1 }],
    ['a message has to join its key', 'claim', { joining: '1' }],
    ['there is no room for something', 'sweep', { leftover: 'true' }],
  ] as const)('is not empty when %s after it began', (_, kind, told) => {
    const { look } = looks()
    look('sweep', { lastkey: 'k' })
    look(kind, told)
    look('sweep')

    expect(look('walk')).toEqual({ isOver: true, isEmpty: false })
  })

  test('that found something is followed by one that may be empty', () => {
    const { look } = looks()
    look('sweep', { found: 1 })
    look('walk')
    look('sweep')

    expect(look('walk')).toEqual({ isOver: true, isEmpty: true })
  })

  describe('that has ended empty', () => {
    const ended = () => {
      const { look, memory } = looks()
      look('sweep')
      look('walk')
      return { look, memory }
    }

    test('is known as empty while the next ones go on: the rounds of other queues take longer', () => {
      const { look } = ended()

      expect([look('sweep', { lastkey: 'k' }), look('walk'), look('claim')]).toEqual(
        Array(3).fill({ isOver: false, isEmpty: true }),
      )
    })

    test.each([
      ['a claim finds something', 'claim', { found: 1 }],
      ['a sweep finds something', 'sweep', { found: 1, lastkey: 'k' }],
      ['a message has to join its key', 'claim', { joining: '1' }],
      ['there is no room for something', 'claim', { leftover: 'true' }],
    ] as const)('is not empty any more when %s, until another has ended empty', (_, kind, told) => {
      const { look } = ended()
      const after = [look(kind, told), look('sweep'), look('walk'), look('sweep'), look('walk')]

      expect(after.slice(0, 2).map(({ isEmpty }) => isEmpty)).toEqual([false, false])
      expect(after.at(-1)).toEqual({ isOver: true, isEmpty: true })
    })

    test('says nothing to who asks later', () => {
      const { look, memory } = ended()
      beginRounds(memory)

      expect([look('sweep').isEmpty, look('walk').isEmpty]).toEqual([false, true])
    })
  })
})
