import { describe, expect, test } from 'vitest'
import { each, leaseOf } from '../../../../tests/support/delivery-bench.ts'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Fate, Held } from './held.ts'
import { createSuccession } from './succession.ts'
import { createUnits } from './units.ts'

const acked: Outcome = { kind: 'ack', followOns: [] }
const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const ofKey = (seq: number): Held => leaseOf({ seq: `${seq}`, key: 'a', isOrdered: true })

/** A line of messages whose first has been started, and a desk that tells what becomes of them when it is asked to. */
function lineOf(...held: readonly Held[]) {
  const units = createUnits(
    each(() => {}),
    fakeClock(),
    () => {},
  )
  const told: string[] = []
  const pending = new Map<string, Held>()
  const take = (what: string, one: Held): void => {
    told.push(`${what} ${one.lease.seq}${one.isLink ? ' link' : ''}`)
    pending.set(one.lease.seq, one)
  }
  const succession = createSuccession({
    units,
    desk: { finished: (one) => take('finished', one), unstarted: (one) => take('unstarted', one) },
    keySettled: (queue, key, seq) => void told.push(`settled ${queue} ${key} ${seq}`),
    changed: () => void told.push('changed'),
  })
  units.add(held)
  units.next()
  const end = async (seq: number, fate: Fate): Promise<readonly string[]> => {
    pending.get(`${seq}`)?.over?.(fate)
    await idle()
    return told.splice(0)
  }
  const next = () => units.next()?.map(({ lease }) => lease.seq) ?? null
  return { units, succession, told, end, next }
}

describe('the next of a key', () => {
  test('starts when it is written that the one before is gone, and not when its handler has ended', async () => {
    const [first, second] = [ofKey(1), ofKey(2)]
    const { succession, told, end, next } = lineOf(first, second)
    succession.finished(first, acked, 5)
    await idle()

    expect([told.splice(0), next()]).toEqual([['finished 1 link'], null])
    expect(await end(1, 'gone')).toEqual(['changed'])
    expect(next()).toEqual(['2'])
  })

  test('is looked for right behind the last that was here', async () => {
    const [first] = [ofKey(1)]
    const { succession, told, end } = lineOf(first)
    succession.finished(first, acked, 5)

    expect(told.splice(0)).toEqual(['finished 1'])
    expect(await end(1, 'gone')).toEqual(['settled orders a 1', 'changed'])
  })

  test('is given back with all behind it when the one before is kept; nobody looks behind that', async () => {
    const [first, second, third] = [ofKey(1), ofKey(2), ofKey(3)]
    const { succession, told, end, next } = lineOf(first, second, third)
    succession.finished(first, acked, 5)
    told.splice(0)

    expect(await end(1, 'kept')).toEqual(['unstarted 2', 'unstarted 3', 'changed'])
    expect(next()).toBeNull()
  })

  test('is given back before anybody looks for it, when the one before was skipped: that is noted on it', async () => {
    const [first, second] = [ofKey(1), ofKey(2)]
    const { succession, told, end } = lineOf(first, second)
    succession.finished(first, acked, 5)
    told.splice(0)

    expect(await end(1, 'skipped')).toEqual(['unstarted 2'])
    expect(await end(2, 'kept')).toEqual(['settled orders a 1', 'changed'])
  })

  test('is looked for from the one before on, when nobody knows what became of that, and what was behind it is given back', async () => {
    const [first, second] = [ofKey(1), ofKey(2)]
    const { succession, told, end } = lineOf(first, second)
    succession.finished(first, acked, 5)
    told.splice(0)

    expect(await end(1, 'lost')).toEqual(['unstarted 2'])
    expect(await end(2, 'kept')).toEqual(['settled orders a 0', 'changed'])
  })

  test('is given back with what cannot be started any more', async () => {
    const [first, second] = [ofKey(1), ofKey(2)]
    const { succession, told, end } = lineOf(first, second)
    succession.left(first)

    expect(told.splice(0)).toEqual(['unstarted 1'])
    expect(await end(1, 'kept')).toEqual(['unstarted 2', 'changed'])
  })

  test('does not take away from who else waits for the end', async () => {
    const [first] = [ofKey(1)]
    const { succession, end } = lineOf(first)
    const fates: Fate[] = []
    first.over = (fate) => void fates.push(fate)
    succession.finished(first, acked, 5)
    await end(1, 'gone')

    expect(fates).toEqual(['gone'])
  })
})

test('messages without an order end at the desk, and nothing more', async () => {
  const free = [1, 2].map((seq) => leaseOf({ seq: `${seq}`, key: 'a' })) as [Held, Held]
  const { succession, told } = lineOf(...free)
  succession.finished(free[0], acked, 5)
  succession.left(free[1])
  await idle()

  expect(told).toEqual(['finished 1', 'unstarted 2'])
  expect(free.map(({ over }) => over)).toEqual([undefined, undefined])
})
