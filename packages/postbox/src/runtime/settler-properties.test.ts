import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  cut,
  isOpen,
  refusal,
  type Sent,
  scriptedSettler,
} from '../../../../tests/support/scripted-settler.ts'
import {
  acked,
  arming,
  dead,
  failed,
  followed,
  released,
  snoozed,
} from '../../../../tests/support/settlements.ts'
import type { Told } from '../core/events.ts'
import type { Settlement } from '../core/settlement.ts'

const makers = [acked, followed, arming, released, snoozed, failed, dead]
const errors = [cut, ...['23514', '23505', '55P03', '42P01', '42501', '40001', '57P01', '22021'].map(refusal)]

/** What the lane says to a statement: that it wrote all, some (the rest had lost their leases), or that it failed. */
type Answer =
  | { readonly kind: 'all' }
  | { readonly kind: 'some'; readonly keep: number }
  | { readonly kind: 'fail'; readonly error: Error }

const answers: fc.Arbitrary<Answer> = fc.oneof(
  fc.record({ kind: fc.constant('all' as const) }),
  fc.record({ kind: fc.constant('some' as const), keep: fc.nat(3) }),
  fc.record({ kind: fc.constant('fail' as const), error: fc.constantFrom(...errors) }),
)

const settlements = fc
  .array(
    fc.record({
      make: fc.constantFrom(...makers),
      timerId: fc.constantFrom(null, 'daily'),
      maxBatch: fc.constantFrom(1, 3, 1_000),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((given) =>
    given.map(({ make, timerId, maxBatch }, seq) => ({ settlement: make(`${seq}`, { timerId }), maxBatch })),
  )

const scenarios = fc.record({
  settlements,
  answers: fc.array(answers, { maxLength: 40 }),
  giveUpAt: fc.option(fc.nat(20)),
  deadLetters: fc.constantFrom('table' as const, 'discard' as const),
})

type Scenario = typeof scenarios extends fc.Arbitrary<infer S> ? S : never

/** Settles all, answers as it is written and then everything, until nothing is left to do. */
async function play({ settlements, answers, giveUpAt, deadLetters }: Scenario) {
  const scripted = scriptedSettler({ deadLetters })
  const { settle, sent, pass, giveUp, ended } = scripted
  const landed = new Set<string>()
  let most = 0
  for (const { settlement, maxBatch } of settlements) void settle([settlement], maxBatch)
  await pass(0)
  for (let step = 0; ended.length < settlements.length && step < 1_000; step++) {
    if (step === giveUpAt) giveUp.abort()
    const open = sent.filter(isOpen)
    most = Math.max(most, open.length)
    const [one] = open
    if (one === undefined) await pass(60_000)
    else await give(one, answers[step] ?? { kind: 'all' }, landed)
  }
  return { ...scripted, landed, most }
}

function give(one: Sent, answer: Answer, landed: Set<string>): Promise<void> {
  if (answer.kind === 'fail') return one.fail(answer.error)
  const seqs = one.seqs.filter((_, index) => answer.kind === 'all' || index % 4 === answer.keep)
  for (const seq of seqs) landed.add(seq)
  return one.answer(seqs)
}

const endings = {
  delete: 'acked',
  release: 'released',
  snooze: 'snoozed',
  reschedule: 'retried',
  bury: 'dead',
}

function endingsOf(told: readonly Told[], { lease, write }: Settlement): string[] {
  const isEnd = (event: Told): boolean =>
    event.kind === endings[write] ||
    event.kind === 'lease_lost' ||
    (event.kind === 'settle_failed' && event.delayMs === null)
  const own = told.filter((event) => 'seq' in event && event.seq === lease.seq)
  const strange = own.filter(
    (event) => !isEnd(event) && event.kind !== 'settle_failed' && event.kind !== 'dlq_written',
  )
  return [...own.filter(isEnd), ...strange].map(({ kind }) => kind)
}

const played = (check: (end: Awaited<ReturnType<typeof play>>, scenario: Scenario) => void): Promise<void> =>
  fc.assert(
    fc.asyncProperty(scenarios, async (scenario) => check(await play(scenario), scenario)),
    { numRuns: 200 },
  )

describe('whatever the database answers, and whenever it is given up', () => {
  test('each settlement ends once, and once is told how: as what it was only if it landed', async () => {
    await played(({ ended, written, told, landed }, { settlements }) => {
      expect(ended).toHaveLength(settlements.length)
      expect(new Set(ended).size).toBe(settlements.length)
      for (const { settlement } of settlements) {
        const { seq } = settlement.lease
        const told1 = endingsOf(told, settlement)
        if (landed.has(seq)) expect(told1).toEqual([endings[settlement.write]])
        else if (written[seq]?.kind === 'refused') expect(told1).toEqual([])
        else expect([['lease_lost'], ['settle_failed']]).toContainEqual(told1)
      }
    })
  })

  test('only what publishes is ever refused', async () => {
    await played(({ written }, { settlements }) => {
      for (const { settlement } of settlements) {
        const mayBe = settlement.write === 'delete' && settlement.followOns.length > 0
        if (!mayBe) expect(written[settlement.lease.seq]).toMatchObject({ kind: 'over' })
      }
    })
  })

  test('the dead letters are told to have what is dead, and nothing else', async () => {
    await played(({ told, sent }, { deadLetters }) => {
      const marked = sent.filter(({ name }) => name === 'quarantine_dead').flatMap(({ seqs }) => seqs)
      const dead = told.flatMap((event) => (event.kind === 'dead' ? [event.seq] : []))
      const written = told.flatMap((event) => (event.kind === 'dlq_written' ? [event] : []))
      const expected = dead.map((seq) => ({ seq, isQuarantined: marked.includes(seq) }))

      // What is quarantined stays where dead letters are looked for, also when they are discarded.
      expect(written.map(({ seq, isQuarantined }) => ({ seq, isQuarantined }))).toEqual(
        expected.filter(({ isQuarantined }) => deadLetters === 'table' || isQuarantined),
      )
    })
  })

  test('the counts are the events', async () => {
    await played(({ told, settler }) => {
      const countOf = (kind: Told['kind']): number => told.filter((event) => event.kind === kind).length

      expect(settler.settled).toEqual({
        acked: countOf('acked'),
        retried: countOf('retried'),
        snoozed: countOf('snoozed'),
        dead: countOf('dead'),
        released: countOf('released'),
        lost: countOf('lease_lost'),
      })
    })
  })

  test('at most one statement is under way, and in the end nothing waits and nothing is stuck, unless it was given up', async () => {
    await played(({ most, settler, clock, told, giveUp }) => {
      const breaker = told.map(({ kind }) => kind).filter((kind) => kind.startsWith('breaker_'))

      expect(most).toBeLessThanOrEqual(1)
      expect([settler.waiting, clock.left]).toEqual([0, []])
      expect(settler.isStuck && !giveUp.signal.aborted).toBe(false)
      // They take turns, and the last has closed it, unless it is still open.
      expect(breaker).toEqual(
        breaker.map((_, index) => (index % 2 === 0 ? 'breaker_opened' : 'breaker_closed')),
      )
      expect(breaker.length % 2).toBe(settler.isStuck ? 1 : 0)
    })
  })
})
