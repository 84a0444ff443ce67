import { describe, expect, test } from 'vitest'
import {
  badRow,
  cut,
  refusal,
  type Sent,
  scriptedSettler,
} from '../../../../tests/support/scripted-settler.ts'
import {
  acked,
  dead,
  failed,
  followed,
  followOn,
  leaseOf,
  released,
  snoozed,
} from '../../../../tests/support/settlements.ts'
import type { Settlement } from '../core/settlement.ts'

const timer = { timerId: 'daily' }
const goingBack = [released, snoozed, failed]
const taking = refusal('55P03')

/** Each statement as its seqs, and whether timers take their names back by it. */
const namedSummary = (sent: readonly Sent[]): string[] =>
  sent.map(({ seqs, isNamed }) => `${isNamed ? 'named' : 'unnamed'} ${seqs.join(' ')}`)

// A claimed timer has given its name up. When it goes back to waiting it takes it again, unless somebody else has.
describe('timers that go back', () => {
  test.each(goingBack)('take their names back; what is no timer goes apart (case %#)', async (kind) => {
    const { settle, sent, answerAll } = scriptedSettler()
    await settle([kind('1', timer), kind('2'), kind('3', timer)])
    await answerAll()

    expect(namedSummary(sent)).toEqual(['named 1 3', 'unnamed 2'])
  })

  test.each([acked, followed, dead])(
    'and those that do not go back have no use for one (case %#)',
    async (kind) => {
      const { settle, sent, answerAll } = scriptedSettler()
      await settle([kind('1', timer), kind('2')])
      await answerAll()

      expect(namedSummary(sent)).toEqual(['unnamed 1 2'])
    },
  )

  test('do without a name that is taken, and the neighbours keep theirs', async () => {
    for (const kind of goingBack) {
      const { settle, sent, answerAll, told, ended, clock, looks } = scriptedSettler({ isHeard: false })
      await settle(['1', '2', '3', '4'].map((seq) => kind(seq, timer)))
      await answerAll(({ seqs, isNamed }) => (isNamed && seqs.includes('3') ? refusal('23505') : null))

      expect(namedSummary(sent)).toEqual([
        'named 1 2 3 4',
        'named 1 2',
        'named 3 4',
        'named 3',
        'unnamed 3',
        'named 4',
      ])
      expect(ended).toEqual(['1', '2', '3', '4'])
      expect(told.filter(({ kind: name }) => name !== 'retried')).toEqual([])
      expect([clock.asked, looks]).toEqual([[], [false]])
    }
  })

  // By halves, everybody would wait a little for each of them.
  test('all do without, at once, when somebody is about to take the name of one', async () => {
    for (const kind of goingBack) {
      const { settle, sent, answerAll, told, ended, clock, looks } = scriptedSettler({ isHeard: false })
      await settle(['1', '2', '3', '4'].map((seq) => kind(seq, timer)))
      await answerAll(({ seqs, isNamed }) => (isNamed && seqs.includes('3') ? taking : null))

      expect(namedSummary(sent)).toEqual(['named 1 2 3 4', 'unnamed 1 2 3 4'])
      expect(ended).toEqual(['1', '2', '3', '4'])
      expect(told.filter(({ kind: name }) => name !== 'retried')).toEqual([])
      expect([clock.asked, looks]).toEqual([[], [false]])
    }
  })

  test('all do without when all their names are taken', async () => {
    const { settle, sent, answerAll, settler } = scriptedSettler()
    await settle([failed('1', timer), failed('2', timer)])
    await answerAll(({ isNamed }) => (isNamed ? refusal('23505') : null))

    expect(namedSummary(sent)).toEqual(['named 1 2', 'named 1', 'unnamed 1', 'named 2', 'unnamed 2'])
    expect(settler.settled.retried).toBe(2)
  })

  test('that are refused without their names, too, are given up, and reported once', async () => {
    const { settle, sent, answerAll, told, ended } = scriptedSettler()
    await settle([failed('1', timer)])
    await answerAll(() => badRow)

    expect(namedSummary(sent)).toEqual(['named 1', 'unnamed 1'])
    expect(told).toMatchObject([{ kind: 'settle_failed', write: 'reschedule', seq: '1', delayMs: null }])
    expect(ended).toEqual(['1'])
  })

  test.each([cut, ...['40001', '42P01', '57014'].map(refusal)])(
    'keep their names through what passes: the whole is tried again (%s)',
    async (error) => {
      const { settle, sent, pass, settler } = scriptedSettler()
      await settle([failed('1', timer), failed('2', timer)])
      await sent[0]!.fail(error)
      const isStuck = settler.isStuck
      await pass(100)
      await sent[1]!.answer()

      expect(namedSummary(sent)).toEqual(['named 1 2', 'named 1 2'])
      expect([isStuck, settler.settled.retried]).toEqual([true, 2])
    },
  )

  // Without a name there is no lock to be impatient for: somebody else's.
  test('are tried again when they wait for a lock without a name', async () => {
    const { settle, sent, pass, settler } = scriptedSettler()
    await settle([failed('1', timer)])
    await sent[0]!.fail(refusal('55P03'))
    await sent[1]!.fail(refusal('55P03'))
    const isStuck = settler.isStuck
    await pass(100)
    await sent[2]!.answer()

    expect(namedSummary(sent)).toEqual(['named 1', 'unnamed 1', 'unnamed 1'])
    expect([isStuck, settler.settled.retried]).toEqual([true, 1])
  })
})

// The statement that deletes the message publishes: where it is refused, neither happened.
describe('what follows a message', () => {
  test('and is refused is said to whoever settled it, and to no other', async () => {
    const { settle, summary, answerAll, written, told, settler } = scriptedSettler({ isHeard: false })
    await settle(['1', '2', '3'].map((seq) => followed(seq)))
    await answerAll(({ seqs }) => (seqs.includes('2') ? badRow : null))

    expect(summary()).toEqual(['1 2 3', '1 2', '1', '2', '3'].map((seqs) => `delete_with_follow_ons ${seqs}`))
    expect(written).toEqual({
      1: { kind: 'over', landed: true },
      2: { kind: 'refused', error: badRow },
      3: { kind: 'over', landed: true },
    })
    // Not the end of it: it is settled anew, as a failure.
    expect(told).toEqual([])
    expect(settler.settled).toMatchObject({ acked: 2, lost: 0 })
  })

  test.each(['23514', '23505', '22021', 'P0001', '42501'].map(refusal))(
    'and is refused holds nobody: nothing is stuck, nothing sleeps (%s)',
    async (error) => {
      const { settle, sent, clock, looks, written } = scriptedSettler()
      await settle([followed('1')])
      await sent[0]!.fail(error)

      expect([clock.asked, looks, sent.length]).toEqual([[], [false], 1])
      expect(written).toEqual({ 1: { kind: 'refused', error } })
    },
  )

  // A password that is being changed (28), a lock that has nothing to do with a name (55).
  test.each([cut, ...['40001', '42P01', '53100', '28P01', '3D000', '55P03'].map(refusal)])(
    'is tried again whole with what passes (%s)',
    async (error) => {
      const { settle, sent, summary, pass, written } = scriptedSettler()
      await settle([followed('1'), followed('2')])
      await sent[0]!.fail(error)
      await pass(100)
      await sent[1]!.answer()

      expect(summary()).toEqual(Array(2).fill('delete_with_follow_ons 1 2'))
      expect(written).toEqual({ 1: { kind: 'over', landed: true }, 2: { kind: 'over', landed: true } })
    },
  )

  // It is missing for every row: there is nobody to look for.
  test('and may not be inserted is refused whole, not by halves', async () => {
    const { settle, sent, summary, written } = scriptedSettler()
    const error = refusal('42501')
    await settle([followed('1'), followed('2')])
    await sent[0]!.fail(error)

    expect(summary()).toEqual(['delete_with_follow_ons 1 2'])
    expect(written).toEqual({ 1: { kind: 'refused', error }, 2: { kind: 'refused', error } })
  })

  test('is given up with its message when a stop cannot wait: not refused, so not settled anew', async () => {
    const { settle, sent, giveUp, written, told } = scriptedSettler()
    giveUp.abort()
    await settle([followed('1')])
    await sent[0]!.fail(cut)

    expect(written).toEqual({ 1: { kind: 'over', landed: false } })
    expect(told[1]).toMatchObject({ kind: 'settle_failed', write: 'follow', seq: '1', delayMs: null })
  })
})

// What a statement carries is one text, which has an end: no use in sending it, nor in trying again.
describe('what cannot be made a statement of', () => {
  const tooLong = new RangeError('Invalid string length')
  const endless = {
    toJSON() {
      throw tooLong
    },
  } as never
  const tooLarge = (seq: string): Settlement => ({
    write: 'delete',
    lease: leaseOf(seq),
    followOns: [{ ...followOn, headers: endless }],
  })

  test('is found by halves and refused: the others are written, and nothing is stuck', async () => {
    const { settle, summary, answerAll, written, looks, clock } = scriptedSettler()
    await settle([followed('1'), followed('2'), tooLarge('3'), followed('4')])
    await answerAll()

    expect(summary()).toEqual(['1 2', '4'].map((seqs) => `delete_with_follow_ons ${seqs}`))
    expect(written).toMatchObject({
      1: { kind: 'over', landed: true },
      2: { kind: 'over', landed: true },
      3: { kind: 'refused', error: tooLong },
      4: { kind: 'over', landed: true },
    })
    expect([looks.includes(true), clock.asked]).toEqual([false, []])
  })

  test('and publishes nothing is given up, and reported once', async () => {
    const { settle, summary, answerAll, told, ended, looks } = scriptedSettler({ isHeard: false })
    await settle([released('1'), { ...failed('2', timer), error: endless } as Settlement])
    await answerAll()

    expect(summary()).toEqual(['release_leases 1'])
    const end = { kind: 'settle_failed', write: 'reschedule', seq: '2', error: tooLong, delayMs: null }
    expect(told).toMatchObject([end])
    expect([ended, looks.includes(true)]).toEqual([['1', '2'], false])
  })
})
