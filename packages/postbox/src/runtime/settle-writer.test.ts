import { describe, expect, test } from 'vitest'
import {
  badRow,
  cut,
  refusal,
  type Sent,
  scriptedSettler,
  settled,
} from '../../../../tests/support/scripted-settler.ts'
import { acked, dead, failed, followed, released, snoozed } from '../../../../tests/support/settlements.ts'

const timer = { timerId: 'daily' }
const goingBack = [released, snoozed, failed]
const taking = refusal('55P03')
const taken = [refusal('23505'), taking]

/** What is told of a message that is tried again by itself. */
const postponedOf = (seq: string, delayMs: number) => ({
  kind: 'settle_failed',
  write: 'follow',
  messages: 1,
  error: taking,
  delayMs,
  queue: 'orders',
  id: `id-${seq}`,
  seq,
})

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

  test.each(taken)('do without a name that is taken, and the neighbours keep theirs (%s)', async (error) => {
    for (const kind of goingBack) {
      const { settle, sent, answerAll, told, ended, clock, looks } = scriptedSettler({ isHeard: false })
      await settle(['1', '2', '3', '4'].map((seq) => kind(seq, timer)))
      await answerAll(({ seqs, isNamed }) => (isNamed && seqs.includes('3') ? error : null))

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
      1: { kind: 'over' },
      2: { kind: 'refused', error: badRow },
      3: { kind: 'over' },
    })
    // Not the end of it: it is settled anew, as a failure.
    expect(told).toEqual([])
    expect(settler.settled).toMatchObject({ acked: 2, lost: 0 })
  })

  test.each(['23514', '23505', '22021', 'P0001'].map(refusal))(
    'and is refused holds nobody: nothing is stuck, nothing sleeps (%s)',
    async (error) => {
      const { settle, sent, clock, looks, written } = scriptedSettler()
      await settle([followed('1')])
      await sent[0]!.fail(error)

      expect([clock.asked, looks, sent.length]).toEqual([[], [false], 1])
      expect(written).toEqual({ 1: { kind: 'refused', error } })
    },
  )

  test.each([cut, ...['40001', '42P01', '42501', '53100'].map(refusal)])(
    'is tried again whole with what passes (%s)',
    async (error) => {
      const { settle, sent, summary, pass, written } = scriptedSettler()
      await settle([followed('1'), followed('2')])
      await sent[0]!.fail(error)
      await pass(100)
      await sent[1]!.answer()

      expect(summary()).toEqual(Array(2).fill('delete_with_follow_ons 1 2'))
      expect(written).toEqual({ 1: { kind: 'over' }, 2: { kind: 'over' } })
    },
  )

  // Somebody has inserted a timer of that name, and not committed yet.
  test('and waits for a name that is about to be taken is tried again after 1 s and 2 s; the third time it is refused', async () => {
    const { settle, sent, summary, pass, clock, told, written, looks } = scriptedSettler()
    await settle([followed('1')])
    await sent[0]!.fail(taking)
    await pass(999)
    const early = sent.length
    await pass(1)
    await sent[1]!.fail(taking)
    await pass(2_000)
    const before = { ...written }
    await sent[2]!.fail(taking)

    expect([early, summary()]).toEqual([1, Array(3).fill('delete_with_follow_ons 1')])
    expect(clock.asked).toEqual([1_000, 2_000])
    expect(told).toEqual([1_000, 2_000].map((delayMs) => postponedOf('1', delayMs)))
    expect([before, written]).toEqual([{}, { 1: { kind: 'refused', error: taking } }])
    expect([clock.left, looks.includes(true)]).toEqual([[], false])
  })

  test('and waits for a name is written as any other once that is free', async () => {
    const { settle, sent, pass, told, written, settler } = scriptedSettler()
    await settle([followed('1')])
    await sent[0]!.fail(taking)
    await pass(1_000)
    await sent[1]!.answer()

    expect(told.slice(1)).toMatchObject([{ kind: 'acked', seq: '1' }])
    expect([written, settler.settled.acked]).toEqual([{ 1: { kind: 'over' } }, 1])
  })

  test('and waits for a name is found by halves: the others are written, and go on meanwhile', async () => {
    const { settle, summary, answerAll, told, ended, looks } = scriptedSettler({ isHeard: false })
    await settle(['1', '2', '3', '4'].map((seq) => followed(seq)))
    await answerAll(({ seqs }) => (seqs.includes('3') ? taking : null))
    await settle([acked('5'), followed('6')])
    await answerAll()

    const halves = ['1 2 3 4', '1 2', '3 4', '3', '4'].map((seqs) => `delete_with_follow_ons ${seqs}`)
    expect(summary()).toEqual([...halves, 'delete_acked 5', 'delete_with_follow_ons 6'])
    expect(told).toEqual([postponedOf('3', 1_000)])
    expect([ended, looks.includes(true)]).toEqual([['1', '2', '4', '5', '6'], false])
  })

  test('and waits for a name counts its own tries: a newer one that joins it is not refused with it', async () => {
    const { settle, sent, summary, pass, answerAll, written, told } = scriptedSettler()
    await settle([followed('1')])
    await sent[0]!.fail(taking)
    await pass(1_000)
    await sent[1]!.fail(taking)
    // Meanwhile something else is written, so that both wait for its end.
    await settle([acked('9')])
    await pass(2_000)
    await settle([followed('2')])
    await sent[2]!.answer()
    await answerAll(() => taking)

    expect(summary().slice(3)).toEqual(['1 2', '1', '2'].map((seqs) => `delete_with_follow_ons ${seqs}`))
    expect(written).toEqual({ 1: { kind: 'refused', error: taking }, 9: { kind: 'over' } })
    expect(told.at(-1)).toEqual(postponedOf('2', 1_000))
  })

  test('and has waited for a name is refused at once by whatever stays wrong', async () => {
    const { settle, sent, pass, written, clock } = scriptedSettler()
    await settle([followed('1')])
    await sent[0]!.fail(taking)
    await pass(1_000)
    await sent[1]!.fail(badRow)

    expect([written, clock.left]).toEqual([{ 1: { kind: 'refused', error: badRow } }, []])
  })

  test('and waits for a name is not refused by what passes: that counts for nothing', async () => {
    const { settle, sent, summary, pass, written } = scriptedSettler()
    await settle([followed('1')])
    for (let tries = 0; tries < 5; tries++) {
      await sent[tries]!.fail(tries === 2 ? taking : refusal('40001'))
      await pass(30_000)
    }
    await sent[5]!.answer()

    expect(summary()).toHaveLength(6)
    expect(written).toEqual({ 1: { kind: 'over' } })
  })

  test('and waits for a name does not delay a stop: it is tried and refused without waiting', async () => {
    const { settle, sent, giveUp, answerAll, written, clock } = scriptedSettler()
    await settle([followed('1')])
    await sent[0]!.fail(taking)
    giveUp.abort()
    await settled()
    await answerAll(() => taking)

    expect([sent.length, clock.left]).toEqual([3, []])
    expect(written).toEqual({ 1: { kind: 'refused', error: taking } })
  })

  test('is given up with its message when a stop cannot wait: not refused, so not settled anew', async () => {
    const { settle, sent, giveUp, written, told } = scriptedSettler()
    giveUp.abort()
    await settle([followed('1')])
    await sent[0]!.fail(cut)

    expect(written).toEqual({ 1: { kind: 'over' } })
    expect(told[1]).toMatchObject({ kind: 'settle_failed', write: 'follow', seq: '1', delayMs: null })
  })
})
