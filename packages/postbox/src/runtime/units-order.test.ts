import { describe, expect, test } from 'vitest'
import { each, leaseOf } from '../../../../tests/support/delivery-bench.ts'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import type { Held } from './held.ts'
import { createUnits } from './units.ts'

const inLine = (key: string, ...seqs: readonly number[]): Held[] =>
  seqs.map((seq) => leaseOf({ seq: `${seq}`, key, isOrdered: true }))
const seqsOf = (helds: readonly Held[]) => helds.map(({ lease }) => lease.seq).join(' ')

function unitsOf(...claimed: readonly Held[]) {
  const units = createUnits(
    each(() => {}),
    fakeClock(),
    () => {},
  )
  units.add(claimed)
  const all = (): Held[] => {
    const next = units.next()
    return next === null ? [] : [...next, ...all()]
  }
  return { units, all }
}

describe('messages of an ordered queue', () => {
  test('come one for each key; the next when the one before is gone', () => {
    const [a1, a2, a3, b4] = [...inLine('a', 1, 2, 3), ...inLine('b', 4)] as [Held, Held, Held, Held]
    const { units, all } = unitsOf(a1, a2, a3, b4)
    const first = [units.waiting, seqsOf(all()), units.waiting, units.hasNext(a1), units.hasNext(b4)]

    expect(first).toEqual([4, '1 4', 2, true, false])
    expect(units.ended(a1, true)).toEqual({ rest: [], isOver: false })
    expect([units.waiting, seqsOf(all()), units.waiting]).toEqual([2, '2', 1])
    expect(units.ended(b4, true)).toEqual({ rest: [], isOver: true })
    expect(seqsOf(all())).toBe('')
  })

  test('that are claimed later stand behind those of their key that run', () => {
    const [a1] = inLine('a', 1) as [Held]
    const { units, all } = unitsOf(a1)
    all()
    units.add(inLine('a', 2))

    expect([seqsOf(all()), units.hasNext(a1)]).toEqual(['', true])
    units.ended(a1, true)
    expect(seqsOf(all())).toBe('2')
  })

  test('come back when the one before them is not gone, and its key begins anew', () => {
    const [a1, ...behind] = inLine('a', 1, 2, 3) as [Held, Held, Held]
    const { units, all } = unitsOf(a1, ...behind)
    all()

    expect(units.ended(a1, false)).toEqual({ rest: behind, isOver: false })
    expect([units.waiting, seqsOf(all())]).toEqual([0, ''])
    units.add(inLine('a', 1))
    expect(seqsOf(all())).toBe('1')
  })

  test('of one key in two queues do not wait for each other', () => {
    const other = leaseOf({ seq: '2', queue: 'mails', key: 'a', isOrdered: true })

    expect(seqsOf(unitsOf(...inLine('a', 1), other).all())).toBe('1 2')
  })

  test('without an order do not wait for others of their key', () => {
    const free = [1, 2].map((seq) => leaseOf({ seq: `${seq}`, key: 'a' }))

    expect(seqsOf(unitsOf(...free).all())).toBe('1 2')
  })

  test('of a queue that is paused come back; what runs of it has nothing behind it, and the next of the others is first', () => {
    const [a1, a2, b3, b4] = [...inLine('a', 1, 2), ...inLine('b', 3, 4)] as [Held, Held, Held, Held]
    const other = leaseOf({ seq: '5', queue: 'mails', key: 'a', isOrdered: true })
    const { units, all } = unitsOf(a1, a2, b3, b4, other)
    units.next()

    expect([seqsOf(units.remove('orders')), units.waiting]).toEqual(['3 2 4', 1])
    expect(units.ended(a1, true)).toEqual({ rest: [], isOver: true })
    units.add([...inLine('a', 2), ...inLine('b', 3, 4)])
    expect([seqsOf(all()), units.waiting]).toEqual(['5 2 3', 1])
  })

  test('whose process may have died of them are run alone, in their turn', () => {
    const [a1] = inLine('a', 1) as [Held]
    const suspect = leaseOf({ seq: '2', key: 'a', isOrdered: true, attempt: 1, deliveries: 2 })
    const { units, all } = unitsOf(a1, suspect)

    expect([seqsOf(all()), units.hasSuspects]).toEqual(['1', false])
    units.ended(a1, true)
    expect([seqsOf(all()), units.hasSuspects, units.nextSuspect()]).toEqual(['', true, suspect])
  })

  test('close gives back what waits, in line or not, and nothing is left behind what runs', () => {
    const [a1, a2, b3, b4] = [...inLine('a', 1, 2), ...inLine('b', 3, 4)] as [Held, Held, Held, Held]
    const { units } = unitsOf(a1, a2, b3, b4)
    units.next()

    expect([seqsOf(units.close()), units.waiting]).toEqual(['3 2 4', 0])
    expect([units.ended(a1, true), units.waiting]).toEqual([{ rest: [], isOver: true }, 0])
  })
})
