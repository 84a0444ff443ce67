// The books of the interleaving tester, and its list of orders: each promise can be broken, and is then said to be.
import { describe, expect, test } from 'vitest'
import { book, openAccount } from '../interleaving/account.ts'
import { type Booked, idOf, tokenOf } from '../interleaving/books.ts'
import { cursorTwin } from '../interleaving/cursor.ts'
import { countBeginning, firstOrder, nextOrder, nextOtherwise } from '../interleaving/orders.ts'
import { reconcile } from '../interleaving/reconcile.ts'
import { replaceOnce } from '../interleaving/replace-once.ts'
import { largeScenarios, scenarios } from '../interleaving/scenarios.ts'
import type {
  DeadRow,
  Ending,
  Finished,
  Lease,
  MessageRow,
  Snapshot,
  Step,
  Told,
} from '../interleaving/terms.ts'
import { twins } from '../interleaving/twins.ts'

describe('the orders of three programs', () => {
  const first = firstOrder(
    new Map([
      ['A', 3],
      ['B', 2],
      ['C', 2],
    ]),
  )
  const all = listed(first, (order) => nextOrder(order))

  test('are as many as the multinomial coefficient says, each once', () => {
    expect(first).toBe('AAABBCC')
    expect(all).toHaveLength(210)
    expect(new Set(all).size).toBe(210)
    expect(countBeginning(first, 0)).toBe(210)
  })

  test('keep the steps of each', () => {
    expect(new Set(all.map((order) => [...order].sort().join('')))).toEqual(new Set(['AAABBCC']))
  })

  test('are skipped as a whole with what they begin with, and counted', () => {
    const beginnings = listed(first, (order) => nextOtherwise(order, 3))

    expect(beginnings).toEqual(all.filter((order, nth) => order.slice(0, 3) !== all[nth - 1]?.slice(0, 3)))
    expect(beginnings.reduce((sum, order) => sum + countBeginning(order, 3), 0)).toBe(210)
  })
})

function listed(first: string, next: (order: string) => string | null): readonly string[] {
  const orders: string[] = []
  for (let order: string | null = first; order !== null; order = next(order)) orders.push(order)
  return orders
}

const step: Step = { label: 'a step', perform: async () => [] }
const lease = (letter: string, claim = 1): Lease => ({
  seq: '1',
  id: idOf(1),
  token: tokenOf(letter, claim),
  attempts: 0,
  deliveriesBefore: 0,
})
const row: MessageRow = {
  seq: '1',
  id: idOf(1),
  timer: null,
  fired: null,
  token: null,
  isLeaseOver: true,
  attempts: 0,
  deliveries: 0,
  due: 'fresh',
  isFailed: false,
  cycles: 0,
  key: null,
  laterKey: null,
  isParked: false,
}
const letter: DeadRow = { id: idOf(1), timer: null, attempts: 1, deliveries: 1, cycles: 0 }
const empty: Snapshot = { messages: [], dead: [], effects: [], pausedBy: null }
const only = (given: Partial<Snapshot>): Snapshot => ({ ...empty, ...given })
const waiting = only({ messages: [row] })
const timer = only({ messages: [{ ...row, timer: 't', due: 'due' }] })
const claimed: Told = { kind: 'claimed', lease: lease('A'), deliveries: 1, keepsName: false }
const by = (who: string, ending: Ending): Told => ({ kind: 'written', lease: lease(who), ending })
const pausedBy = (who: string): Told => ({ kind: 'paused', by: who, isDone: true })
const acked: Ending = { kind: 'acked', followOns: [] }

/** The promise that is broken when this was told, by sessions that were alone; null: none. */
function brokenBy(before: Snapshot, told: readonly Told[], after?: Snapshot): string | null {
  const finished: Finished = { letter: 'A', step, told, waited: false, wasAlone: true }
  const booked = book(openAccount(before), finished)
  return promiseOf('violation' in booked || after === undefined ? booked : checked(booked, after))
}

function checked(booked: Booked & { readonly account: unknown }, after: Snapshot): Booked {
  const scenario = { key: '', title: '', given: [], programs: {}, isTransactional: true } as const
  return reconcile((booked as Extract<Booked, { account: unknown }>).account, after, scenario)
}

function promiseOf(booked: Booked): string | null {
  return 'violation' in booked ? booked.violation.promise : null
}

describe('the books find out that', () => {
  test.for<[string, Snapshot, readonly Told[], Snapshot?]>([
    ['a message ends once', waiting, [claimed, by('A', acked), by('A', acked)]],
    ['only the holder of the lease writes', waiting, [claimed, by('B', acked)]],
    ['only the holder of the lease writes', only({ dead: [letter] }), [by('A', { kind: 'buried' })]],
    [
      'the holder of the lease may write',
      waiting,
      [claimed, { kind: 'lease lost', lease: lease('A'), ending: acked }],
    ],
    ['only what is free is claimed', waiting, [claimed, { ...claimed, lease: lease('B'), deliveries: 2 }]],
    ['every claim counts a delivery', waiting, [{ ...claimed, deliveries: 2 }]],
    ['what is free is found', waiting, [{ kind: 'claimed enough', room: 1 }]],
    [
      'a timer’s name has one holder',
      timer,
      [{ kind: 'armed', made: { id: idOf(2), timer: 't', delayHours: null }, conflict: 'keep', seq: '2' }],
    ],
    ['a name that nobody holds can be armed', waiting, [{ kind: 'kept', timer: 't', conflict: 'keep' }]],
    ['only a waiting timer is cancelled', waiting, [{ kind: 'cancelled', seq: '1', timer: 't' }]],
    ['a waiting timer can be cancelled', timer, [{ kind: 'nothing to cancel', timer: 't' }]],
    [
      'a dead letter is replayed once',
      only({ dead: [letter] }),
      [
        { kind: 'replayed', id: idOf(1) },
        { kind: 'replayed', id: idOf(1) },
      ],
    ],
    [
      'the second operator is told the truth',
      only({ dead: [letter] }),
      [{ kind: 'not replayed', id: idOf(1), because: 'not_found' }],
    ],
    [
      'the second operator is told the truth',
      waiting,
      [{ kind: 'not replayed', id: idOf(1), because: 'already_replayed' }],
    ],
    [
      'the second operator is told the truth',
      only({ dead: [letter] }),
      [{ kind: 'not replayed', id: idOf(1), because: 'timer_conflict' }],
    ],
    ['nothing is claimed of a paused queue', waiting, [pausedBy('A'), claimed]],
    ['who pauses first stays recorded', waiting, [pausedBy('A'), pausedBy('B')]],
    ['who pauses first stays recorded', waiting, [pausedBy('A')], { ...waiting, pausedBy: 'B' }],
    ['what is not paused can be paused', waiting, [{ kind: 'paused', by: 'A', isDone: false }]],
    ['what is paused is resumed once', waiting, [{ kind: 'resumed', by: 'A', isDone: true }]],
    ['what is paused can be resumed', waiting, [pausedBy('A'), { kind: 'resumed', by: 'B', isDone: false }]],
    ['no step fails', waiting, [{ kind: 'failed', sqlState: '23505', message: 'taken' }]],
    ['no message is lost', waiting, [], only({})],
    ['a message is in one place', waiting, [], only({ messages: [row], dead: [letter] })],
    [
      'a timer’s name has one holder',
      timer,
      [],
      only({ messages: [...timer.messages, { ...timer.messages[0]!, seq: '2', id: idOf(2) }] }),
    ],
    ['nothing changes that was not reported', waiting, [], only({ messages: [{ ...row, attempts: 1 }] })],
    [
      'nothing changes that was not reported',
      waiting,
      [],
      only({ messages: [row, { ...row, seq: '2', id: idOf(2) }] }),
    ],
    ['nothing changes that was not reported', waiting, [claimed], waiting],
    ['the effect of a message is there once', waiting, [claimed, by('A', acked)], only({})],
    ['the effect of a message is there once', waiting, [], only({ messages: [row], effects: [idOf(1)] })],
    [
      'the effect of a message is there once',
      waiting,
      [
        { kind: 'worked', id: idOf(1) },
        { kind: 'worked', id: idOf(1) },
      ],
      only({ messages: [row], effects: [idOf(1), idOf(1)] }),
    ],
  ])('not: %s (%#)', ([promise, before, told, after]) => {
    expect(brokenBy(before, told, after)).toBe(promise)
  })

  test('a transaction that was rolled back has changed nothing, and one that was committed has', () => {
    const inside: readonly Told[] = [{ kind: 'began' }, claimed, by('A', { kind: 'buried' })]
    const buried = only({ dead: [letter] })

    expect(brokenBy(waiting, inside, waiting)).toBeNull()
    expect(brokenBy(waiting, [...inside, { kind: 'rolled back' }], waiting)).toBeNull()
    expect(brokenBy(waiting, [...inside, { kind: 'committed' }], buried)).toBeNull()
    expect(brokenBy(waiting, [...inside, { kind: 'committed' }], waiting)).not.toBeNull()
  })

  test('a lease is over when an hour has passed, and not before', () => {
    const again: Told = { kind: 'claimed', lease: lease('B'), deliveries: 2, keepsName: false }

    expect(brokenBy(waiting, [claimed, { kind: 'an hour passed' }, again])).toBeNull()
    expect(brokenBy(waiting, [claimed, again])).toBe('only what is free is claimed')
  })
})

test('every scenario and every twin has a key of its own, and every twin a scenario', () => {
  const keys = [...scenarios, ...largeScenarios, ...twins, cursorTwin].map(({ key }) => key)

  expect(new Set(keys).size).toBe(keys.length)
  expect(twins.filter(({ scenario }) => !keys.includes(scenario))).toEqual([])
  expect(
    twins.filter(({ promise, redundant }) => (promise === undefined) === (redundant === undefined)),
  ).toEqual([])
})

test('a twin that finds nothing to break, or two places, is refused', () => {
  expect(() => replaceOnce('a guard', 'no such', '')).toThrow('expected one match of no such, got 0')
  expect(() => replaceOnce('guard, guard', 'guard', '')).toThrow('expected one match of guard, got 2')
})
