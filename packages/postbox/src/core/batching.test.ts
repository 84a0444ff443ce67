import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { batchesOf, compareSeq, halves, type SettlementBatch, type Waiting } from './batching.ts'
import type { Lease } from './lease.ts'
import type { Settlement } from './settlement.ts'

type Write = Settlement['write']

function leaseOf(seq: string): Lease {
  return {
    token: '0190163d-8694-739b-9aea-966c26f8ad91',
    id: '0190163d-8694-739b-9aea-966c26f8ad92',
    seq,
    queue: 'orders',
    key: null,
    body: new Uint8Array(0),
    headers: {},
    attempt: 1,
    deliveries: 1,
    createdAt: new Date(0),
    generation: null,
  }
}

function settlementOf(write: Write, seq: string): Settlement {
  const lease = leaseOf(seq)
  const failed = { lease, error: 'bad', thrown: null }
  switch (write) {
    case 'reschedule':
      return { write, ...failed, delayMs: 1 }
    case 'bury':
      return { write, ...failed, reason: 'rejected' }
    default:
      return { write, lease }
  }
}

function waitingFor(write: Write, maxBatch: number, ...seqs: readonly string[]): Waiting[] {
  return seqs.map((seq) => ({ settlement: settlementOf(write, seq), maxBatch }))
}

/** Each batch as its kind and its seqs. */
function summaryOf(batches: readonly SettlementBatch[]): unknown[] {
  return batches.map(({ write, settlements }) => [write, ...settlements.map(({ lease }) => lease.seq)])
}

const batchOf = (...seqs: readonly string[]): SettlementBatch => ({
  write: 'delete',
  settlements: seqs.map((seq) => settlementOf('delete', seq)),
})

describe('batchesOf', () => {
  test('nothing waits: nothing is written', () => {
    expect(batchesOf([])).toEqual([])
  })

  test('deletes go first, then releases, reschedules and burials, whatever came first', () => {
    const waiting = (['bury', 'reschedule', 'release', 'delete'] as const).flatMap((write, index) =>
      waitingFor(write, 1_000, `${index}`),
    )

    expect(summaryOf(batchesOf(waiting))).toEqual([
      ['delete', '3'],
      ['release', '2'],
      ['reschedule', '1'],
      ['bury', '0'],
    ])
  })

  test('settlements of one kind go together, in the order of seq as a number and not as text', () => {
    const waiting = waitingFor('delete', 1_000, '100', '9', '9007199254740993', '10', '9007199254740992')

    expect(summaryOf(batchesOf(waiting))).toEqual([
      ['delete', '9', '10', '100', '9007199254740992', '9007199254740993'],
    ])
  })

  test('a batch of more than the most is written by several statements, the lowest seqs first', () => {
    expect(summaryOf(batchesOf(waitingFor('delete', 2, '5', '3', '1', '4', '2')))).toEqual([
      ['delete', '1', '2'],
      ['delete', '3', '4'],
      ['delete', '5'],
    ])
  })

  test('a batch of exactly the most is one statement', () => {
    expect(summaryOf(batchesOf(waitingFor('delete', 3, '1', '2', '3')))).toEqual([['delete', '1', '2', '3']])
  })

  test('who may be written with one other is not written with more because others may', () => {
    const waiting = [
      ...waitingFor('delete', 1_000, '1', '4'),
      ...waitingFor('delete', 2, '2', '3', '5'),
      ...waitingFor('bury', 2, '6'),
    ]

    expect(summaryOf(batchesOf(waiting))).toEqual([
      ['delete', '1', '4'],
      ['delete', '2', '3'],
      ['delete', '5'],
      ['bury', '6'],
    ])
  })

  test('a most of one is a statement for each', () => {
    expect(summaryOf(batchesOf(waitingFor('reschedule', 1, '2', '1')))).toEqual([
      ['reschedule', '1'],
      ['reschedule', '2'],
    ])
  })

  test('the settlements themselves are passed on, and the list of those that wait is left as it was', () => {
    const waiting = waitingFor('delete', 1_000, '2', '1')
    const before = [...waiting]
    const [batch] = batchesOf(waiting)

    expect(waiting).toEqual(before)
    expect(batch?.settlements[0]).toBe(waiting[1]?.settlement)
    expect(batch?.settlements[1]).toBe(waiting[0]?.settlement)
  })

  test('each settlement is in exactly one batch, of its kind, no larger than it allows, sorted', () => {
    const one = fc.record({
      write: fc.constantFrom<Write>('delete', 'release', 'reschedule', 'bury'),
      maxBatch: fc.integer({ min: 1, max: 4 }),
    })

    fc.assert(
      fc.property(fc.array(one, { maxLength: 40 }), (given) => {
        const waiting = given.flatMap(({ write, maxBatch }, seq) => waitingFor(write, maxBatch, `${seq}`))
        const batches = batchesOf(waiting)
        const mostOf = new Map(waiting.map(({ settlement, maxBatch }) => [settlement, maxBatch]))
        const written = batches.flatMap(({ settlements }) => settlements)

        expect(new Set(written)).toEqual(new Set(mostOf.keys()))
        expect(written).toHaveLength(waiting.length)
        for (const { write, settlements } of batches) {
          const seqs = settlements.map(({ lease }) => Number(lease.seq))
          expect(settlements.length).toBeGreaterThan(0)
          expect(settlements.every((settlement) => settlement.write === write)).toBe(true)
          expect(settlements.every((settlement) => settlements.length <= (mostOf.get(settlement) ?? 0))).toBe(
            true,
          )
          expect(seqs).toEqual([...seqs].sort((a, b) => a - b))
        }
      }),
    )
  })
})

describe('halves', () => {
  test.each([
    [
      ['1', '2'],
      [
        ['delete', '1'],
        ['delete', '2'],
      ],
    ],
    [
      ['1', '2', '3'],
      [
        ['delete', '1', '2'],
        ['delete', '3'],
      ],
    ],
    [
      ['1', '2', '3', '4'],
      [
        ['delete', '1', '2'],
        ['delete', '3', '4'],
      ],
    ],
    [['1'], [['delete', '1']]],
  ])('of %j', (seqs, expected) => {
    expect(summaryOf(halves(batchOf(...seqs)))).toEqual(expected)
  })

  // A batch that did not get smaller would be halved for ever.
  test('every half of two or more is smaller, none is empty, nothing is lost and the order stays', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 200 }), (count) => {
        const batch = batchOf(...Array.from({ length: count }, (_, seq) => `${seq}`))
        const both = halves(batch)

        expect(both).toHaveLength(2)
        expect(both.every(({ settlements: { length } }) => length > 0 && length < count)).toBe(true)
        expect(both.flatMap(({ settlements }) => settlements)).toEqual(batch.settlements)
      }),
    )
  })
})

describe('compareSeq', () => {
  test('orders seqs as the numbers that they are, up to the last of a bigint', () => {
    const seq = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n })

    fc.assert(
      fc.property(seq, seq, (a, b) => {
        expect(Math.sign(compareSeq(`${a}`, `${b}`))).toBe(a < b ? -1 : a > b ? 1 : 0)
      }),
      {
        examples: [
          [9n, 10n],
          [2n ** 53n, 2n ** 53n + 1n],
          [99n, 100n],
          [7n, 7n],
        ],
      },
    )
  })
})
