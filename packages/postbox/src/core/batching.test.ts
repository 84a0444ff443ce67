import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  acked,
  arming,
  dead,
  failed,
  followed,
  followOn,
  leaseOf,
  parked,
  released,
  snoozed,
} from '../../../../tests/support/settlements.ts'
import {
  type BatchKind,
  batchesOf,
  compareSeq,
  type Entry,
  halves,
  mostRefusals,
  refusedDelayMs,
  type SettlementBatch,
} from './batching.ts'
import type { Settlement } from './settlement.ts'

const makers = {
  delete: acked,
  release: released,
  snooze: snoozed,
  reschedule: failed,
  follow: followed,
  bury: dead,
  park: parked,
  quarantine: dead,
} as const satisfies Record<BatchKind, unknown>

const kinds = Object.keys(makers) as BatchKind[]
const goingBack: readonly BatchKind[] = ['release', 'snooze', 'reschedule']

interface Given {
  readonly maxBatch?: number
  readonly timerId?: string | null
}

function entryOf(kind: BatchKind, seq: string, { maxBatch = 1_000, timerId = null }: Given = {}): Entry {
  const refusals = kind === 'quarantine' ? mostRefusals : 0
  return { settlement: makers[kind](seq, { timerId }), maxBatch, refusals }
}

const entriesOf = (kind: BatchKind, maxBatch: number, ...seqs: readonly string[]): Entry[] =>
  seqs.map((seq) => entryOf(kind, seq, { maxBatch }))

const seqsOf = ({ entries }: SettlementBatch): string[] => entries.map((one) => one.settlement.lease.seq)

/** Each batch as its kind and its seqs. */
function summaryOf(batches: readonly SettlementBatch[]): unknown[] {
  return batches.map((batch) => [batch.kind, ...seqsOf(batch)])
}

const batchOf = (...seqs: readonly string[]): SettlementBatch => ({
  kind: 'delete',
  isNamed: false,
  entries: entriesOf('delete', 1_000, ...seqs),
})

describe('batchesOf', () => {
  test('nothing waits: nothing is written', () => {
    expect(batchesOf([])).toEqual([])
  })

  test('deletes go first, then what goes back, then what may be refused, whatever came first', () => {
    const entries = kinds.toReversed().map((kind, index) => entryOf(kind, `${index}`))

    expect(summaryOf(batchesOf(entries))).toEqual([
      ['delete', '7'],
      ['release', '6'],
      ['snooze', '5'],
      ['reschedule', '4'],
      ['follow', '3'],
      ['bury', '2'],
      ['park', '1'],
      ['quarantine', '0'],
    ])
  })

  test('settlements of one kind go together, in the order of seq as a number and not as text', () => {
    const entries = entriesOf('delete', 1_000, '100', '9', '9007199254740993', '10', '9007199254740992')

    expect(summaryOf(batchesOf(entries))).toEqual([
      ['delete', '9', '10', '100', '9007199254740992', '9007199254740993'],
    ])
  })

  test('a batch of more than the most is written by several statements, the lowest seqs first', () => {
    expect(summaryOf(batchesOf(entriesOf('delete', 2, '5', '3', '1', '4', '2')))).toEqual([
      ['delete', '1', '2'],
      ['delete', '3', '4'],
      ['delete', '5'],
    ])
  })

  test('a batch of exactly the most is one statement', () => {
    expect(summaryOf(batchesOf(entriesOf('delete', 3, '1', '2', '3')))).toEqual([['delete', '1', '2', '3']])
  })

  test('who may be written with one other is not written with more because others may', () => {
    const entries = [
      ...entriesOf('delete', 1_000, '1', '4'),
      ...entriesOf('delete', 2, '2', '3', '5'),
      ...entriesOf('bury', 2, '6'),
    ]

    expect(summaryOf(batchesOf(entries))).toEqual([
      ['delete', '1', '4'],
      ['delete', '2', '3'],
      ['delete', '5'],
      ['bury', '6'],
    ])
  })

  test('a most of one is a statement for each', () => {
    expect(summaryOf(batchesOf(entriesOf('reschedule', 1, '2', '1')))).toEqual([
      ['reschedule', '1'],
      ['reschedule', '2'],
    ])
  })

  test('the entries themselves are passed on, and the list of those that wait is left as it was', () => {
    const entries = entriesOf('delete', 1_000, '2', '1')
    const before = [...entries]
    const [batch] = batchesOf(entries)

    expect(entries).toEqual(before)
    expect(batch?.entries[0]).toBe(entries[1])
    expect(batch?.entries[1]).toBe(entries[0])
  })

  // The statement that publishes is the longer one, and may be refused: who publishes nothing must not wait for it.
  test('a delete that publishes is not written with those that do not', () => {
    const entries = [entryOf('follow', '1'), entryOf('delete', '2'), entryOf('follow', '3')]

    expect(summaryOf(batchesOf(entries))).toEqual([
      ['delete', '2'],
      ['follow', '1', '3'],
    ])
  })

  test.each([
    [0, 'bury'],
    [mostRefusals - 1, 'bury'],
    [mostRefusals, 'quarantine'],
    [mostRefusals + 1, 'quarantine'],
  ])('a burial that was refused %d times: %s', (refusals, kind) => {
    expect(summaryOf(batchesOf([{ ...entryOf('bury', '1'), refusals }]))).toEqual([[kind, '1']])
  })

  test('a burial is refused three times before it is given up', () => {
    expect(mostRefusals).toBe(3)
  })

  test.each([
    ['table', 'quarantine'],
    ['discard', 'quarantine'],
    ['in-place', 'bury'],
  ] as const)('a burial that is refused too often, %s: %s', (deadLetters, kind) => {
    const entries = [{ ...entryOf('bury', '1'), refusals: mostRefusals }]

    expect(summaryOf(batchesOf(entries, deadLetters))).toEqual([[kind, '1']])
  })

  test('what is refused waits three seconds in all for its way out, and without one ever longer, up to a minute', () => {
    const delays = (hasWayOut: boolean): number[] =>
      [1, 2, 3, 4, 7, 50, 2_000].map((refusals) => refusedDelayMs(refusals, hasWayOut))

    expect(delays(true)).toEqual([1_000, 2_000, 0, 0, 0, 0, 0])
    expect(delays(false)).toEqual([1_000, 2_000, 4_000, 8_000, 60_000, 60_000, 60_000])
  })

  test.each(goingBack)('%s: timers go apart from the rest, and take their names with them', (kind) => {
    const entries = [
      entryOf(kind, '1'),
      entryOf(kind, '2', { timerId: 'daily' }),
      entryOf(kind, '3'),
      entryOf(kind, '4', { timerId: '' }),
    ]
    const named = batchesOf(entries).map((batch) => [batch.isNamed, ...seqsOf(batch)])

    expect(named).toEqual([
      [false, '1', '3'],
      [true, '2', '4'],
    ])
  })

  test.each(kinds.filter((kind) => !goingBack.includes(kind)))(
    '%s: a timer that does not come back needs no name, and goes with the rest',
    (kind) => {
      const entries = [entryOf(kind, '1'), entryOf(kind, '2', { timerId: 'daily' })]

      expect(batchesOf(entries).map((batch) => [batch.isNamed, ...seqsOf(batch)])).toEqual([
        [false, '1', '2'],
      ])
    },
  )

  // Somebody may be about to take the name: what arms no timer must not wait for him.
  test('a delete that arms a timer goes apart from those that publish none', () => {
    const entries = [
      entryOf('follow', '1'),
      { ...entryOf('follow', '2'), settlement: arming('2') },
      entryOf('follow', '3', { timerId: 'daily' }),
      { ...entryOf('follow', '4'), settlement: arming('4') },
    ]

    expect(batchesOf(entries).map((batch) => [batch.kind, batch.isNamed, ...seqsOf(batch)])).toEqual([
      ['follow', false, '1', '3'],
      ['follow', true, '2', '4'],
    ])
  })

  test('one timer among what it publishes is enough', () => {
    const followOns = [followOn, { ...followOn, timerId: 'daily' }, followOn]
    const settlement: Settlement = { write: 'delete', lease: leaseOf('1'), followOns }

    expect(batchesOf([{ ...entryOf('follow', '1'), settlement }])).toMatchObject([{ isNamed: true }])
  })

  describe('what one statement publishes', () => {
    /** Messages that publish two bodies, of so many megabytes together. */
    const publishing = (megabytes: readonly number[], maxBatch = 1_000): Entry[] =>
      megabytes.map((size, index) => {
        const body = { byteLength: (size * 1_000_000) / 2 } as Uint8Array
        const followOns = [body, body].map((own) => ({ ...followOn, body: own }))
        const lease = leaseOf(`${index + 1}`)
        return { settlement: { write: 'delete', lease, followOns }, maxBatch, refusals: 0 }
      })
    const portionsOf = (entries: readonly Entry[]): string[] =>
      batchesOf(entries).map((batch) => seqsOf(batch).join(' '))

    test.each<[string, readonly number[], readonly string[]]>([
      ['up to 16 MB go together', [4, 4, 8], ['1 2 3']],
      ['a byte more begins another', [4, 4, 8.000002], ['1 2', '3']],
      ['one that is larger goes alone', [1, 40, 1], ['1', '2', '3']],
      ['the bytes are counted anew for each', [10, 6, 10, 6, 1], ['1 2', '3 4', '5']],
    ])('%s', (_, megabytes, portions) => {
      expect(portionsOf(publishing(megabytes))).toEqual(portions)
    })

    test('is no more than the most messages, too', () => {
      expect(portionsOf(publishing([1, 1, 1, 15, 1], 2))).toEqual(['1 2', '3 4', '5'])
    })
  })

  // Its lease had ended, and we claimed it again before what became of the first delivery was written: the answer tells seqs.
  test('a message that is settled twice is not twice in one batch', () => {
    const entries = entriesOf('delete', 1_000, '2', '1', '2', '3', '2')

    expect(summaryOf(batchesOf(entries))).toEqual([
      ['delete', '1', '2'],
      ['delete', '2'],
      ['delete', '2', '3'],
    ])
    expect(new Set(batchesOf(entries).flatMap((batch) => batch.entries))).toEqual(new Set(entries))
  })

  test('each entry is in exactly one batch, of its kind and name, no larger than it allows, sorted', () => {
    const one = fc.record({
      kind: fc.constantFrom(...kinds),
      maxBatch: fc.integer({ min: 1, max: 4 }),
      timerId: fc.constantFrom(null, 'daily'),
    })

    fc.assert(
      fc.property(fc.array(one, { maxLength: 40 }), (given) => {
        const entries = given.map(({ kind, ...rest }, seq) => entryOf(kind, `${seq}`, rest))
        const kindOf = new Map(entries.map((entry, index) => [entry, given[index]?.kind]))
        const batches = batchesOf(entries)
        const written = batches.flatMap((batch) => batch.entries)

        expect(new Set(written)).toEqual(new Set(entries))
        expect(written).toHaveLength(entries.length)
        for (const batch of batches) {
          const isNamed = ({ settlement }: Entry): boolean =>
            goingBack.includes(batch.kind) && settlement.lease.timerId !== null
          const seqs = seqsOf(batch).map(Number)
          expect(batch.entries.length).toBeGreaterThan(0)
          expect(batch.entries.every((entry) => kindOf.get(entry) === batch.kind)).toBe(true)
          expect(batch.entries.every((entry) => isNamed(entry) === batch.isNamed)).toBe(true)
          expect(batch.entries.every(({ maxBatch }) => batch.entries.length <= maxBatch)).toBe(true)
          expect(seqs).toEqual([...seqs].sort((a, b) => a - b))
        }
      }),
    )
  })

  test('no more statements than it takes', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 9 }), (count, maxBatch) => {
        const seqs = Array.from({ length: count }, (_, seq) => `${seq}`)

        expect(batchesOf(entriesOf('bury', maxBatch, ...seqs))).toHaveLength(Math.ceil(count / maxBatch))
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

  test.each([true, false])('are as the whole was: named %s', (isNamed) => {
    const whole: SettlementBatch = { ...batchOf('1', '2'), kind: 'snooze', isNamed }

    expect(halves(whole)).toMatchObject([
      { kind: 'snooze', isNamed },
      { kind: 'snooze', isNamed },
    ])
  })

  // A batch that did not get smaller would be halved for ever.
  test('every half of two or more is smaller, none is empty, nothing is lost and the order stays', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 200 }), (count) => {
        const batch = batchOf(...Array.from({ length: count }, (_, seq) => `${seq}`))
        const both = halves(batch)

        expect(both).toHaveLength(2)
        expect(both.every(({ entries: { length } }) => length > 0 && length < count)).toBe(true)
        expect(both.flatMap(({ entries }) => entries)).toEqual(batch.entries)
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
