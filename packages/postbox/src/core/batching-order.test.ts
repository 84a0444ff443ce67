// Settlements of ordered queues: what is parked, and what need not wait for the disk.
import { expect, test } from 'vitest'
import { acked, dead, failed, followOn, leaseOf, parked } from '../../../../tests/support/settlements.ts'
import { batchesOf, type Entry, halves, mostRefusals } from './batching.ts'
import type { Settlement } from './settlement.ts'

const entry = (settlement: Settlement, given: Partial<Entry> = {}): Entry => ({
  ...{ settlement, maxBatch: 1_000, refusals: 0 },
  ...given,
})
const summaryOf = (entries: readonly Entry[], ...storage: readonly ('table' | 'in-place' | 'discard')[]) =>
  batchesOf(entries, ...storage).map(({ kind, isNamed, isQuick, entries: own }) => ({
    ...{ kind, isNamed, isQuick },
    seqs: own.map(({ settlement }) => settlement.lease.seq),
  }))

test.each(['table', 'in-place', 'discard'] as const)(
  'a burial that holds its key is parked, whatever becomes of others (%s), and however often it was refused',
  (storage) => {
    const entries = [entry(dead('1')), entry(parked('2')), entry(parked('3'), { refusals: mostRefusals })]

    expect(summaryOf(entries, storage).map(({ kind, seqs }) => [kind, ...seqs])).toEqual([
      ['bury', '1'],
      ['park', '2', '3'],
    ])
  },
)

test('a delete that another of its key waits for goes quickly, apart from those that wait for the disk', () => {
  const entries = [
    entry(acked('1'), { isLink: true }),
    entry(acked('2')),
    entry(acked('3'), { isLink: false }),
  ]

  expect(summaryOf(entries)).toEqual([
    { kind: 'delete', isNamed: false, isQuick: true, seqs: ['1'] },
    { kind: 'delete', isNamed: false, isQuick: undefined, seqs: ['2', '3'] },
  ])
})

test('nothing else goes quickly: what is put back must be there after a crash', () => {
  const entries = [failed('1'), dead('2'), parked('3')].map((one) => entry(one, { isLink: true }))

  expect(summaryOf(entries).map(({ isQuick }) => isQuick)).toEqual([undefined, undefined, undefined])
})

test('halves of a quick batch are quick', () => {
  const [batch] = batchesOf(['1', '2'].map((seq) => entry(acked(seq), { isLink: true })))

  expect(halves(batch!).map(({ isQuick }) => isQuick)).toEqual([true, true])
})

test('a follow-on into a key that somebody may have is written as one whose name somebody may take', () => {
  const publishing = (seq: string, isOrdered?: boolean): Entry =>
    entry({
      write: 'delete',
      lease: leaseOf(seq),
      followOns: [{ ...followOn, ...(isOrdered === undefined ? {} : { isOrdered }) }],
    })

  expect(summaryOf([publishing('1', true), publishing('2', false), publishing('3')])).toMatchObject([
    { kind: 'follow', isNamed: true, seqs: ['1'] },
    { kind: 'follow', isNamed: false, seqs: ['2', '3'] },
  ])
})
