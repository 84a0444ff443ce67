import { describe, expect, test } from 'vitest'
import { batch, each, leaseOf, leasesUpTo } from '../../../../tests/support/delivery-bench.ts'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import type { Held } from './held.ts'
import { createUnits } from './units.ts'

/** Resolves when everything that could run without waiting has run. */
const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const seqsOf = (helds: readonly Held[] | null) => helds?.map(({ lease }) => lease.seq).join(' ') ?? null

const seqs = (...numbers: readonly number[]): Held[] => numbers.map((seq) => leaseOf({ seq: `${seq}` }))

function unitsOf({ size = 3, maxWaitMs = 50 }: { readonly size?: number; readonly maxWaitMs?: number } = {}) {
  const clock = fakeClock()
  const counts = { ready: 0 }
  const units = createUnits(
    batch(() => {}, size, maxWaitMs),
    clock,
    () => {
      counts.ready++
    },
  )
  const next = () => seqsOf(units.next())
  const pass = (ms: number): Promise<void> => {
    clock.advance(ms)
    return idle()
  }
  return { units, clock, counts, next, pass }
}

describe('messages one by one', () => {
  test('come in the order in which they were claimed, whatever happened to them before', () => {
    const clock = fakeClock()
    const units = createUnits(
      each(() => {}),
      clock,
      () => {},
    )
    units.add([...leasesUpTo(2), leaseOf({ seq: '3', attempt: 4, deliveries: 4 })])
    units.add([leaseOf({ seq: '4' })])
    const waiting = units.waiting
    const came = Array.from({ length: 5 }, () => seqsOf(units.next()))

    expect([waiting, came, units.waiting]).toEqual([4, ['1', '2', '3', '4', null], 0])
    expect(clock.asked).toEqual([])
  })

  test('close gives back what waits', () => {
    const units = createUnits(
      each(() => {}),
      fakeClock(),
      () => {},
    )
    units.add(leasesUpTo(3))
    units.next()

    expect([seqsOf(units.close()), units.waiting, units.next()]).toEqual(['2 3', 0, null])
  })
})

describe('batches', () => {
  test('full ones come at once, in order; the rest waits', () => {
    const { units, next } = unitsOf()
    units.add(leasesUpTo(8))

    expect([next(), next(), next(), units.waiting]).toEqual(['1 2 3', '4 5 6', null, 2])
  })

  test('one that is filled by a later claim comes at once', () => {
    const { units, next } = unitsOf()
    units.add(seqs(1, 2))
    const before = next()
    units.add(seqs(3))

    expect([before, next()]).toEqual([null, '1 2 3'])
  })

  test('one that is not full comes when its first message has waited long enough, and not before', async () => {
    const { units, clock, counts, next, pass } = unitsOf()
    units.add(seqs(1))
    await pass(30)
    units.add(seqs(2))
    await pass(19)
    const before = [next(), counts.ready]
    await pass(1)

    expect([before, counts.ready, next(), units.waiting]).toEqual([[null, 0], 1, '1 2', 0])
    expect(clock.asked).toEqual([50])
  })

  test('it may still grow while no slot is free, up to its size', async () => {
    const { units, next, pass } = unitsOf()
    units.add(seqs(1))
    await pass(50)
    units.add(seqs(2, 3, 4))

    expect([next(), next()]).toEqual(['1 2 3', '4'])
  })

  test('after it came the next one has its own time', async () => {
    const { units, clock, counts, next, pass } = unitsOf()
    units.add(seqs(1))
    await pass(50)
    const first = next()
    units.add(seqs(2))
    const before = next()
    await pass(49)
    const between = [next(), counts.ready]
    await pass(1)

    expect([first, before, between, next(), counts.ready]).toEqual(['1', null, [null, 1], '2', 2])
    expect(clock.asked).toEqual([50, 50])
  })

  test('a full one that leaves nobody behind ends the waiting', async () => {
    const { units, clock, counts, next, pass } = unitsOf()
    units.add(seqs(1))
    await pass(20)
    units.add(seqs(2, 3))
    const came = next()
    const left = clock.left
    await pass(100)

    expect([came, left, counts.ready]).toEqual(['1 2 3', [], 0])
  })

  test('those that a full one leaves behind wait no longer than their time', async () => {
    const { units, counts, next, pass } = unitsOf()
    units.add(leasesUpTo(4))
    const full = next()
    await pass(50)

    expect([full, counts.ready, next()]).toEqual(['1 2 3', 1, '4'])
  })

  test('maxWaitMs: 0 waits for nobody, and asks no clock', () => {
    const { units, clock, next } = unitsOf({ maxWaitMs: 0 })
    units.add(seqs(1, 2))
    const first = next()
    units.add(seqs(3))

    expect([first, next(), next(), clock.asked]).toEqual(['1 2', '3', null, []])
  })

  test('an empty claim asks no clock', () => {
    const { units, clock, next } = unitsOf()
    units.add([])

    expect([clock.asked, next()]).toEqual([[], null])
  })

  test('a message that failed before comes alone, before the others, and does not fill a batch', () => {
    const past = { attempt: 2, deliveries: 2 }
    const { units, clock, next } = unitsOf()
    units.add([...seqs(1, 2), leaseOf({ seq: '7', ...past }), leaseOf({ seq: '8', ...past })])
    const waiting = units.waiting

    expect([waiting, next(), next(), next(), units.waiting]).toEqual([4, '7', '8', null, 2])
    units.add(seqs(3))
    expect([next(), clock.asked]).toEqual(['1 2 3', [50]])
  })

  test('one that comes alone waits for nobody, and no clock is asked', () => {
    const { units, clock, next } = unitsOf()
    units.add([leaseOf({ attempt: 2, deliveries: 2 })])

    expect([clock.asked, next()]).toEqual([[], '1'])
  })

  test('close gives all back, those that come alone, too, and ends the waiting', async () => {
    const { units, clock, counts, next, pass } = unitsOf()
    units.add([...seqs(1, 2), leaseOf({ seq: '7', attempt: 2, deliveries: 2 })])
    const back = seqsOf(units.close())
    const left = clock.left
    await pass(50)

    expect([back, left, counts.ready, units.waiting, next()]).toEqual(['7 1 2', [], 0, 0, null])
  })
})

describe('what is of one queue', () => {
  const mixed = (): Held[] => [
    leaseOf({ seq: '1' }),
    leaseOf({ seq: '2', queue: 'mails' }),
    leaseOf({ seq: '3', attempt: 2, queue: 'mails' }),
    leaseOf({ seq: '4', attempt: 2 }),
    leaseOf({ seq: '5' }),
  ]

  test('is taken out, and the others stay in their order', () => {
    const singles = createUnits(
      each(() => {}),
      fakeClock(),
      () => {},
    )
    singles.add(mixed())

    expect(seqsOf(singles.remove('orders'))).toBe('1 4 5')
    expect(singles.remove('orders')).toEqual([])
    expect(singles.waiting).toBe(2)
    expect([seqsOf(singles.next()), seqsOf(singles.next())]).toEqual(['2', '3'])
  })

  test('is taken out of a batch that waits, suspects included; the others wait on', async () => {
    const { units, next, pass, counts } = unitsOf({ size: 9 })
    units.add(mixed())

    expect(seqsOf(units.remove('mails'))).toBe('3 2')
    expect([units.waiting, next()]).toEqual([3, '4'])
    await pass(50)
    expect([counts.ready, next()]).toEqual([1, '1 5'])
  })

  test('when nothing is left the waiting ends, and that of the next begins anew', async () => {
    const { units, clock, counts, next, pass } = unitsOf()
    units.add(seqs(1, 2))
    await pass(40)

    units.remove('orders')
    expect(clock.left).toEqual([])
    units.add(seqs(3))
    await pass(40)
    expect([counts.ready, next()]).toEqual([0, null])
    await pass(10)
    expect([counts.ready, next()]).toEqual([1, '3'])
  })
})

describe.each([
  ['one by one', each(() => {})],
  ['in batches', batch(() => {}, 2, 50)],
])('suspects, where messages come %s,', (_, run) => {
  const suspect = (seq: number, silent: number, attempt = 1): Held =>
    leaseOf({ seq: `${seq}`, attempt, deliveries: attempt + silent })
  const open = () => createUnits(run, fakeClock(), () => {})

  test('wait apart, come one at a time, and those with the fewest deliveries without an outcome first', () => {
    const units = open()
    units.add([suspect(1, 3), ...seqs(2), suspect(3, 1), suspect(4, 1, 5)])
    units.add([suspect(5, 2), ...seqs(6)])
    const before = [units.waiting, units.hasSuspects]
    const came = Array.from({ length: 5 }, () => units.nextSuspect()?.lease.seq)

    expect([before, came]).toEqual([
      [6, true],
      ['3', '4', '5', '1', undefined],
    ])
    expect([units.waiting, units.hasSuspects, units.next()?.[0]?.lease.seq]).toEqual([2, false, '2'])
  })

  test('are not among the others, and are given back with them', () => {
    const units = open()
    units.add([suspect(1, 1)])
    const others = units.next()
    units.add(seqs(2))

    expect([others, seqsOf(units.close())]).toEqual([null, '1 2'])
    expect([units.waiting, units.hasSuspects, units.nextSuspect()]).toEqual([0, false, null])
  })
})
