import { describe, expect, test } from 'vitest'
import type { OrderedQueueRow } from '../sql/claim-in-order.ts'
import {
  createOrderMemory,
  type LookKind,
  learnPlace,
  type Place,
  placeOf,
  wantedOf,
} from './order-memory.ts'

const nothing = {
  more: 'false',
  reached: null,
  lastkey: null,
  joining: '0',
  leftkeys: null,
  leftover: 'false',
}
const demand = { queue: 'orders', room: 2, leaseMs: 1_000 }

function placeWith(keys: number): Place {
  const place = placeOf(createOrderMemory(0), 'orders')
  for (let n = 1; n <= keys; n++) place.settled.set(`k${n}`, String(n))
  return place
}

function learn(place: Place, leftkeys: string | null, during: () => void = () => {}): void {
  const asked = wantedOf(place, demand, 'claim')
  during()
  const row = { ...nothing, leftkeys } as OrderedQueueRow
  learnPlace(place, { kind: 'claim', asked, row, seen: null, found: 0, lastDueMs: null })
}

test('a claim asks for about as many settled keys as there is room for, and for some where there is little', () => {
  const asks = (room: number): number => wantedOf(placeWith(3_000), { ...demand, room }, 'claim').keys.length

  expect([1, 100, 5_000].map(asks)).toEqual([16, 100, 1_000])
})

test('settled keys that a claim has looked at are forgotten, but those for which there was no room', () => {
  const place = placeWith(3)

  learn(place, '["k2"]')

  expect([...place.settled]).toEqual([['k2', '2']])
})

test('where many settled keys were left a claim asks for as many as had room, and some; then for all again', () => {
  const place = placeWith(3_000)
  const roomy = { ...demand, room: 500 }
  const asked = (): number => wantedOf(place, roomy, 'claim').keys.length
  const leave = (left: number): void => {
    const asked = wantedOf(place, roomy, 'claim')
    const leftkeys = JSON.stringify(asked.keys.slice(0, left).map(({ key }) => key))
    const row = { ...nothing, leftkeys } as OrderedQueueRow
    learnPlace(place, { kind: 'claim', asked, row, seen: null, found: 0, lastDueMs: null })
  }

  leave(200)
  expect(asked()).toBe(350)
  leave(50)
  expect(asked()).toBe(350)
  leave(49)
  expect(asked()).toBe(500)
  leave(500)
  expect(asked()).toBe(50)
})

test('a key that is settled anew while a claim is under way is asked for again', () => {
  const place = placeWith(2)

  learn(place, null, () => place.settled.set('k1', '9'))

  expect([...place.settled]).toEqual([['k1', '9']])
})

describe('a round of sweeps', () => {
  const look = (place: Place, kind: LookKind, answer: Partial<OrderedQueueRow> & { found?: number } = {}) => {
    const { found = 0, ...told } = answer
    const row = { ...nothing, ...told } as OrderedQueueRow
    const asked = wantedOf(place, demand, kind)
    return learnPlace(place, { kind, asked, row, seen: null, found, lastDueMs: null })
  }

  test('is over when all keys and all rows were seen, and empty when nothing was found by then', () => {
    const place = placeWith(0)

    expect(look(place, 'sweep', { lastkey: 'k' })).toEqual({ isOver: false, isEmpty: false })
    expect(look(place, 'walk')).toEqual({ isOver: false, isEmpty: false })
    expect(look(place, 'sweep')).toEqual({ isOver: true, isEmpty: true })
  })

  test('is not empty for what was found since it began, and does not count what was found before', () => {
    const place = placeWith(0)
    look(place, 'claim', { found: 1 })
    look(place, 'sweep', { lastkey: 'k' })
    look(place, 'claim', { found: 1 })
    look(place, 'sweep')

    expect(look(place, 'walk')).toEqual({ isOver: true, isEmpty: false })
    look(place, 'claim', { found: 1 })
    look(place, 'sweep')
    expect(look(place, 'walk')).toEqual({ isOver: true, isEmpty: true })
  })

  test('is empty though sweeps do not look at all fresh rows: walks do', () => {
    const place = placeWith(0)
    look(place, 'sweep', { more: 'true', reached: '1000' })

    expect(look(place, 'walk')).toEqual({ isOver: true, isEmpty: true })
  })

  test('is not empty when there was no room for something, though nothing came', () => {
    const place = placeWith(0)
    look(place, 'sweep', { leftover: 'true' })

    expect(look(place, 'walk')).toEqual({ isOver: true, isEmpty: false })
  })

  test('begins at the first key and the first row', () => {
    const place = placeWith(0)
    look(place, 'walk')
    look(place, 'sweep')
    look(place, 'walk', { more: 'true', reached: '7' })
    look(place, 'sweep', { lastkey: 'k' })
    expect(wantedOf(place, demand, 'sweep').keysFrom).toBe('k')

    look(place, 'walk')
    look(place, 'sweep')

    expect([wantedOf(place, demand, 'sweep').keysFrom, wantedOf(place, demand, 'walk').after]).toEqual([
      '',
      '0',
    ])
  })
})
