import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { badRow, cut, refusal, scriptedSettler, settled } from '../../../../tests/support/scripted-settler.ts'
import { acked, dead, failed, followed, released, snoozed } from '../../../../tests/support/settlements.ts'
import type { Settlement } from '../core/settlement.ts'

const many = (kind: (seq: string) => Settlement, ...seqs: readonly string[]): Settlement[] =>
  seqs.map((seq) => kind(seq))
const placeOf = (seq: string) => ({ queue: 'orders', id: `id-${seq}`, seq })
const none = { acked: 0, retried: 0, snoozed: 0, dead: 0, released: 0, lost: 0 }

describe('a flush', () => {
  test('writes together what is settled together, and begins anew when it is over', async () => {
    const { settle, sent, summary } = scriptedSettler()
    await settle(many(acked, '1', '2', '3'))
    await sent[0]!.answer()
    await settle([acked('4')])

    expect(summary()).toEqual(['delete_acked 1 2 3', 'delete_acked 4'])
  })

  test('what comes while one is under way waits for its end, and is written together by the next', async () => {
    const { settler, settle, sent, summary } = scriptedSettler()
    await settle([acked('1')])
    for (const seq of ['2', '3', '4']) await settle([acked(seq)])
    const [sentDuring, waiting] = [summary(), settler.waiting]
    await sent[0]!.answer()

    expect(sentDuring).toEqual(['delete_acked 1'])
    expect(waiting).toBe(3)
    expect(summary().slice(1)).toEqual(['delete_acked 2 3 4'])
    expect(settler.waiting).toBe(0)
  })

  test('at most one statement is ever under way', async () => {
    const { settle, sent } = scriptedSettler()
    const unanswered: number[] = []
    for (let round = 0; round < 5; round++) {
      await settle([acked(`1${round}`), failed(`2${round}`), dead(`3${round}`), released(`4${round}`)])
      unanswered.push(sent.length - round)
      await sent[round]!.answer()
    }

    expect(unanswered).toEqual([1, 1, 1, 1, 1])
  })

  test('is one statement for each kind, deletes first and burials last, each in the order of seq', async () => {
    const { settle, summary, answerAll } = scriptedSettler()
    await settle([dead('7'), failed('10'), released('5'), acked('20'), failed('9'), acked('3')])
    await settle([followed('8'), snoozed('6'), followed('2'), snoozed('11')])
    await answerAll()

    expect(summary()).toEqual([
      'delete_acked 3 20',
      'release_leases 5',
      'reschedule_retried 9 10',
      'bury_dead 7',
      'snooze_messages 6 11',
      'delete_with_follow_ons 2 8',
    ])
  })

  test('of more than maxBatch is as many statements as it takes; of 1, a statement for each', async () => {
    const { settle, summary, answerAll } = scriptedSettler()
    void settle(many(acked, '1', '2', '3', '4', '5'), 2)
    await settle(many(acked, '6', '7'), 1)
    await answerAll()

    expect(summary().map((one) => one.slice('delete_acked '.length))).toEqual(['1 2', '3 4', '5', '6', '7'])
  })

  test('passes its failpoints in order', async () => {
    const passed: string[] = []
    const { settle, sent } = scriptedSettler({
      failpoint: { reach: async (name) => void passed.push(name) },
    })
    await settle([acked('1')])
    const before = [...passed]
    await sent[0]!.answer()

    expect(before).toEqual(['before_flush', 'flush_sent'])
    expect(passed.slice(2)).toEqual(['after_flush'])
  })
})

describe('settle', () => {
  test('resolves when it is written, and not before', async () => {
    const { settle, sent, ended } = scriptedSettler()
    await settle([acked('1')])
    await settle([acked('2')])
    const before = [...ended]
    await sent[0]!.answer()
    const between = [...ended]
    await sent[1]!.answer()

    expect([before, between, ended]).toEqual([[], ['1'], ['1', '2']])
  })

  test('does not wait for other statements of its flush: a row that is gone must not be renewed', async () => {
    const { settle, sent, ended } = scriptedSettler()
    await settle([acked('1'), failed('2')])
    await sent[0]!.answer()

    expect(ended).toEqual(['1'])
  })

  test.each([acked, followed, released, snoozed, failed, dead])(
    'says that it is over, written or lost (case %#)',
    async (kind) => {
      const { settle, sent, written } = scriptedSettler()
      await settle(many(kind, '1', '2'))
      await sent[0]!.answer(['2'])

      expect(written).toEqual({ 1: { kind: 'over', landed: false }, 2: { kind: 'over', landed: true } })
    },
  )
})

describe('a row that cannot be written', () => {
  test('is found by halves: it is reported and does not hold the others', async () => {
    const { settle, summary, answerAll, told, ended, settler } = scriptedSettler()
    await settle(many(failed, '1', '2', '3', '4', '5'))
    await answerAll(({ seqs }) => (seqs.includes('4') ? badRow : null))

    expect(summary()).toEqual(
      ['1 2 3 4 5', '1 2 3', '4 5', '4', '5'].map((seqs) => `reschedule_retried ${seqs}`),
    )
    expect(told.filter(({ kind }) => kind !== 'retried')).toEqual([
      {
        kind: 'settle_failed',
        ...placeOf('4'),
        write: 'reschedule',
        messages: 1,
        error: badRow,
        delayMs: null,
      },
    ])
    expect(ended.toSorted()).toEqual(['1', '2', '3', '4', '5'])
    expect(settler.settled).toEqual({ ...none, retried: 4 })
  })

  test('is not waited for: nothing sleeps, and nothing is stuck', async () => {
    const { settle, sent, clock, settler } = scriptedSettler()
    await settle([acked('1')])
    await sent[0]!.fail(badRow)

    expect(clock.asked).toEqual([])
    expect(settler.isStuck).toBe(false)
  })

  test('after a failure that passed leaves nothing stuck either: the database has answered', async () => {
    const { settle, sent, pass, settler, looks } = scriptedSettler()
    await settle([acked('1')])
    await sent[0]!.fail(refusal('40001'))
    await pass(100)
    await sent[1]!.fail(badRow)

    expect(settler.isStuck).toBe(false)
    expect(looks.at(-1)).toBe(false)
  })
})

describe('any other failure', () => {
  beforeEach(() => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
  })

  afterEach(() => {
    vi.restoreAllMocks()
  })

  test.each([cut, ...['40001', '40P01', '42P01', '53100', '55P03', '57014', '57P01', '08006'].map(refusal)])(
    'the whole batch is tried again, ever later, until it is written (%s)',
    async (failure) => {
      const { settle, sent, summary, clock, pass, ended } = scriptedSettler()
      await settle(many(acked, '1', '2', '3'))
      for (let tries = 0; tries < 3; tries++) {
        await sent[tries]!.fail(failure)
        await pass(clock.asked.at(-1)! - 1)
        const early = sent.length
        await pass(1)
        expect([early, sent.length]).toEqual([tries + 1, tries + 2])
      }
      const before = [...ended]
      await sent[3]!.answer()

      expect(summary()).toEqual(Array(4).fill('delete_acked 1 2 3'))
      expect(clock.asked).toEqual([50, 100, 200])
      expect([before, ended]).toEqual([[], ['1', '2', '3']])
    },
  )

  test('is told each time, with what it waits for', async () => {
    const { settle, sent, pass, told } = scriptedSettler()
    await settle(many(failed, '1', '2'))
    await sent[0]!.fail(cut)
    await pass(50)
    await sent[1]!.fail(cut)

    const failure = { kind: 'settle_failed', write: 'reschedule', messages: 2, error: cut }
    expect(told).toEqual([
      { kind: 'breaker_opened', error: cut },
      { ...failure, delayMs: 50 },
      { ...failure, delayMs: 100 },
    ])
  })

  test('is asked again after whole milliseconds', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(1 / 3)
    const { settle, sent, told } = scriptedSettler()
    await settle([acked('1')])
    await sent[0]!.fail(cut)

    expect(told.at(-1)).toMatchObject({ kind: 'settle_failed', delayMs: 67 })
  })

  test('holds what comes meanwhile; it is written together afterwards', async () => {
    const { settle, sent, summary, pass, settler } = scriptedSettler()
    await settle([acked('1')])
    await sent[0]!.fail(cut)
    await settle([acked('2')])
    await settle([acked('3')])
    const waiting = settler.waiting
    await pass(50)
    await sent[1]!.answer()

    expect(waiting).toBe(2)
    expect(summary()).toEqual(['delete_acked 1', 'delete_acked 1', 'delete_acked 2 3'])
  })

  test.each([
    ['may have landed, so it is not called a lost lease for sure', cut, true],
    ['was refused, so it was lost', refusal('40001'), false],
  ])('a retry that finds no row: the try before it %s', async (_title, failure, mayHaveLanded) => {
    const { settle, sent, pass, told, ended } = scriptedSettler()
    await settle([acked('1')])
    await sent[0]!.fail(failure)
    await pass(50)
    await sent[1]!.answer([])

    expect(told.filter(({ kind }) => kind === 'lease_lost')).toMatchObject([{ seq: '1', mayHaveLanded }])
    expect(ended).toEqual(['1'])
  })

  test('that may have landed is remembered through later ones that did not', async () => {
    const { settle, sent, pass, told } = scriptedSettler()
    await settle([acked('1')])
    await sent[0]!.fail(cut)
    await pass(50)
    await sent[1]!.fail(refusal('40001'))
    await pass(100)
    await sent[2]!.answer([])

    expect(told.find(({ kind }) => kind === 'lease_lost')).toMatchObject({ mayHaveLanded: true })
  })

  test('that may have landed is nothing to the next batch', async () => {
    const { settle, sent, pass, told } = scriptedSettler()
    await settle([acked('1'), failed('2')])
    await sent[0]!.fail(cut)
    await pass(50)
    await sent[1]!.answer()
    await sent[2]!.answer([])

    expect(told.find(({ kind }) => kind === 'lease_lost')).toMatchObject({ seq: '2', mayHaveLanded: false })
  })
})

describe('giving up', () => {
  test('ends the wait: it is tried once more, then each message is reported and let go of', async () => {
    const { settle, sent, told, clock, giveUp, ended, written } = scriptedSettler()
    await settle([acked('1'), acked('2'), failed('3')])
    await sent[0]!.fail(cut)
    const before = [...ended]
    giveUp.abort()
    await settled()
    const left = clock.left.length
    await sent[1]!.fail(cut)
    await sent[2]!.fail(cut)

    expect([before, left, sent.length]).toEqual([[], 0, 3])
    expect(ended.toSorted()).toEqual(['1', '2', '3'])
    expect(Object.values(written)).toEqual(Array(3).fill({ kind: 'over', landed: false }))
    const over = { kind: 'settle_failed', messages: 1, error: cut, delayMs: null }
    expect(told.slice(2)).toEqual([
      { ...over, ...placeOf('1'), write: 'delete' },
      { ...over, ...placeOf('2'), write: 'delete' },
      { ...over, ...placeOf('3'), write: 'reschedule' },
    ])
  })

  test('loses nothing that can still be written', async () => {
    const { settle, sent, told, giveUp, ended, settler } = scriptedSettler({ isHeard: false })
    giveUp.abort()
    await settle([acked('1')])
    await sent[0]!.answer()

    expect([ended, settler.settled.acked, told]).toEqual([['1'], 1, []])
  })
})

describe('what was settled', () => {
  test('is counted by kind, and what was lost apart', async () => {
    const { settle, sent, settler, answerAll } = scriptedSettler()
    await settle([acked('1'), acked('2'), acked('3'), released('4'), failed('5'), dead('6'), dead('7')])
    await settle([snoozed('8'), followed('9')])
    await sent[0]!.answer(['1', '3'])
    await answerAll()

    expect(settler.settled).toEqual({ acked: 3, released: 1, retried: 1, snoozed: 1, dead: 2, lost: 1 })
  })

  test('counts what was lost before it could be settled, and writes and tells nothing for it', () => {
    const { settler, sent, told } = scriptedSettler()
    settler.countLost()

    expect(settler.settled).toEqual({ ...none, lost: 1 })
    expect([sent, told]).toEqual([[], []])
  })
})
