import { describe, expect, test } from 'vitest'
import {
  badRow,
  cut,
  names,
  refusal,
  scriptedSettler,
  settled,
} from '../../../../tests/support/scripted-settler.ts'
import {
  acked,
  dead,
  failed,
  followed,
  released,
  snoozed,
  thrown,
} from '../../../../tests/support/settlements.ts'
import type { DeadLetterStorage } from '../core/storage-modes.ts'

const refusals = ['23514', '42P01', '42501'].map(refusal)
const failedOf = (seq: string, delayMs: number | null, error: Error) => ({
  kind: 'settle_failed',
  write: 'bury',
  messages: 1,
  error,
  delayMs,
  queue: 'orders',
  id: `id-${seq}`,
  seq,
})

describe('a burial that the dead letters refuse', () => {
  test.each(refusals)('is tried again after 1 s, after 2 s, and then quarantined (%s)', async (error) => {
    const { settle, sent, summary, pass, clock, told, ended, looks } = scriptedSettler()
    await settle([dead('1')])
    await sent[0]!.fail(error)
    await pass(999)
    const early = sent.length
    await pass(1)
    await sent[1]!.fail(error)
    await pass(2_000)
    await sent[2]!.fail(error)
    await pass(0)
    const before = [...ended]
    await sent[3]!.answer()

    expect(early).toBe(1)
    expect(summary()).toEqual(['bury_dead 1', 'bury_dead 1', 'bury_dead 1', 'quarantine_dead 1'])
    expect(clock.asked).toEqual([1_000, 2_000, 0])
    expect(told.slice(0, 3)).toEqual([1_000, 2_000, 0].map((delayMs) => failedOf('1', delayMs, error)))
    expect(told.slice(3)).toMatchObject([
      { kind: 'dead', seq: '1', reason: 'rejected', error: thrown },
      { kind: 'dlq_written', seq: '1', reason: 'rejected', isQuarantined: true },
    ])
    expect([before, ended]).toEqual([[], ['1']])
    expect(looks).not.toContain(true)
  })

  test('is buried as any other when the dead letters take it in the meantime', async () => {
    const { settle, sent, pass, told, ended, settler } = scriptedSettler()
    await settle([dead('1')])
    await sent[0]!.fail(refusal('42P01'))
    await pass(1_000)
    await sent[1]!.answer()

    expect(told.slice(1)).toMatchObject([{ kind: 'dead' }, { kind: 'dlq_written', isQuarantined: false }])
    expect([ended, settler.settled.dead]).toEqual([['1'], 1])
  })

  test('does not hold its neighbours: what they wait for is written meanwhile, and nothing is stuck', async () => {
    const { settle, sent, summary, answerAll, settler, looks, ended } = scriptedSettler()
    await settle([dead('1')])
    await sent[0]!.fail(badRow)
    await settle([acked('2'), failed('3'), dead('4')])
    await answerAll()

    expect(summary().slice(1)).toEqual(['delete_acked 2', 'reschedule_retried 3', 'bury_dead 4'])
    expect(ended).toEqual(['2', '3', '4'])
    expect([settler.isStuck, settler.waiting, looks.includes(true)]).toEqual([false, 0, false])
  })

  test('for one row is found by halves, and the others are buried', async () => {
    const { settle, summary, answerAll, told, ended } = scriptedSettler()
    await settle(['1', '2', '3', '4'].map((seq) => dead(seq)))
    await answerAll(({ seqs }) => (seqs.includes('3') ? badRow : null))

    expect(summary()).toEqual(['1 2 3 4', '1 2', '3 4', '3', '4'].map((seqs) => `bury_dead ${seqs}`))
    expect(told.filter(({ kind }) => kind === 'settle_failed')).toEqual([failedOf('3', 1_000, badRow)])
    expect(ended).toEqual(['1', '2', '4'])
  })

  // A missing table is missing for every row: ten statements more would find nobody to blame.
  test.each(['42P01', '42501', '42703'].map(refusal))('for all is not halved (%s)', async (error) => {
    const { settle, sent, summary, pass, told } = scriptedSettler()
    await settle(['1', '2', '3'].map((seq) => dead(seq)))
    await sent[0]!.fail(error)
    const during = summary()
    await pass(1_000)

    expect(during).toEqual(['bury_dead 1 2 3'])
    expect(told).toEqual(['1', '2', '3'].map((seq) => failedOf(seq, 1_000, error)))
    expect(summary().slice(1)).toEqual(['bury_dead 1 2 3'])
  })

  test('counts its own refusals: a newer one is not quarantined with it', async () => {
    const { settle, sent, pass, summary, told } = scriptedSettler()
    await settle([dead('1')])
    await sent[0]!.fail(badRow)
    await pass(1_000)
    await sent[1]!.fail(badRow)
    await settle([dead('2')])
    await sent[2]!.fail(badRow)
    await pass(1_000)
    await sent[3]!.fail(badRow)
    await pass(1_000)
    await sent[4]!.fail(badRow)
    await pass(0)

    expect(summary()).toEqual([
      ...['1', '1', '2', '2', '1'].map((seq) => `bury_dead ${seq}`),
      'quarantine_dead 1',
    ])
    expect(told.map((event) => ('delayMs' in event ? event.delayMs : null))).toEqual([
      1_000, 2_000, 1_000, 2_000, 0,
    ])
  })

  test('is not refused by what passes: that is tried again at once, and counts for nothing', async () => {
    const { settle, sent, pass, summary, told } = scriptedSettler()
    await settle([dead('1')])
    for (let tries = 0; tries < 5; tries++) {
      await sent[tries]!.fail(refusal('40001'))
      await pass(30_000)
    }
    await sent[5]!.answer()

    expect(summary()).toEqual(Array(6).fill('bury_dead 1'))
    expect(told.at(-2)).toMatchObject({ kind: 'dlq_written', isQuarantined: false })
  })

  test('does not delay a stop: it is tried and quarantined without waiting', async () => {
    const { settle, sent, summary, giveUp, ended, answerAll, clock } = scriptedSettler()
    await settle([dead('1')])
    await sent[0]!.fail(badRow)
    giveUp.abort()
    await settled()
    await answerAll(({ name }) => (name === 'bury_dead' ? badRow : null))

    expect(summary()).toEqual(['bury_dead 1', 'bury_dead 1', 'bury_dead 1', 'quarantine_dead 1'])
    expect([ended, clock.left]).toEqual([['1'], []])
  })
})

// An alert depends on it: that the lease may be lost is not what it has to say.
describe('a burial whose answer was lost', () => {
  const kindsOf = (told: readonly { readonly kind: string }[]): string[] =>
    told
      .map(({ kind }) => kind)
      .filter((kind) => kind !== 'settle_failed' && kind !== 'breaker_opened' && kind !== 'breaker_closed')

  /** Two, whose first answer is cut off. */
  async function lost(deadLetters: DeadLetterStorage = 'table') {
    const scripted = scriptedSettler({ deadLetters })
    await scripted.settle([dead('1'), dead('2')])
    await scripted.sent[0]!.fail(cut)
    await scripted.pass(100)
    return scripted
  }

  test('is looked for among the dead letters, and told as dead if it lies there', async () => {
    const { sent, summary, told, settler, ended } = await lost()
    await sent[1]!.answer([])
    const before = kindsOf(told)
    await sent[2]!.answer()

    expect(summary()).toEqual(['bury_dead 1 2', 'bury_dead 1 2', 'find_buried 1 2'])
    expect([before, kindsOf(told)]).toEqual([[], ['dead', 'dlq_written', 'dead', 'dlq_written']])
    expect([settler.settled.dead, settler.settled.lost, ended]).toEqual([2, 0, ['1', '2']])
  })

  test('is told once when the second try wrote it', async () => {
    const { sent, told, settler } = await lost()
    await sent[1]!.answer(['1'])
    await sent[2]!.answer(['1', '2'])

    expect(kindsOf(told)).toEqual(['dead', 'dlq_written', 'dead', 'dlq_written'])
    expect(settler.settled).toMatchObject({ dead: 2, lost: 0 })
  })

  test('and that does not lie there had lost its lease', async () => {
    const { sent, told, settler } = await lost()
    await sent[1]!.answer([])
    await sent[2]!.answer(['2'])

    expect(told.find(({ kind }) => kind === 'lease_lost')).toMatchObject({ seq: '1', mayHaveLanded: true })
    expect(settler.settled).toMatchObject({ dead: 1, lost: 1 })
  })

  // What the second try wrote is written: it must not be tried, refused or given up for want of a look.
  test.each([cut, refusal('42501'), badRow])(
    'is over though one cannot look: it may have landed (%s)',
    async (error) => {
      const { sent, told, settler, ended } = await lost()
      await sent[1]!.answer(['1'])
      await sent[2]!.fail(error)

      expect(kindsOf(told)).toEqual(['dead', 'dlq_written', 'lease_lost'])
      expect(told.find(({ kind }) => kind === 'lease_lost')).toMatchObject({ seq: '2', mayHaveLanded: true })
      expect([sent.length, ended, settler.isStuck]).toEqual([3, ['1', '2'], false])
    },
  )

  test('is not looked for when the try before was refused, or where there are no dead letters', async () => {
    const refused = scriptedSettler()
    await refused.settle([dead('1')])
    await refused.sent[0]!.fail(refusal('40001'))
    await refused.pass(100)
    await refused.sent[1]!.answer([])
    const discarded = await lost('discard')
    await discarded.sent[1]!.answer([])

    expect([...refused.sent, ...discarded.sent].filter(({ name }) => name === 'find_buried')).toEqual([])
    expect([refused.ended, discarded.ended]).toEqual([['1'], ['1', '2']])
  })
})

describe('a quarantine', () => {
  /** Burials that were refused three times: what is sent next marks them dead where they are. */
  async function quarantined(...seqs: readonly string[]) {
    const scripted = scriptedSettler()
    const { settle, sent, pass } = scripted
    await settle(seqs.map((seq) => dead(seq)))
    for (const [index, delayMs] of [1_000, 2_000, 0].entries()) {
      await sent[index]!.fail(refusal('42P01'))
      await pass(delayMs)
    }
    return { ...scripted, before: scripted.told.length }
  }

  test('that is refused, too, is given up: the message is delivered again when its lease ends', async () => {
    const { sent, told, before, ended, written, settler, looks } = await quarantined('1')
    await sent[3]!.fail(badRow)

    expect(told.slice(before)).toEqual([{ ...failedOf('1', null, badRow), write: 'quarantine' }])
    expect([ended, written['1'], settler.settled.dead]).toEqual([['1'], { kind: 'over', landed: false }, 0])
    expect([sent.length, looks.includes(true)]).toEqual([4, false])
  })

  test('whose answer was lost is looked for where it would lie, and told as dead if it does', async () => {
    const { sent, summary, pass, told, before, settler } = await quarantined('1', '2')
    await sent[3]!.fail(cut)
    await pass(100)
    await sent[4]!.answer([])
    await sent[5]!.answer(['2'])

    expect(summary().slice(3)).toEqual(['quarantine_dead 1 2', 'quarantine_dead 1 2', 'find_buried 1 2'])
    expect(sent[5]?.text).not.toContain(names.dead)
    expect(told.slice(before).filter(({ kind }) => kind === 'dead' || kind === 'lease_lost')).toMatchObject([
      { kind: 'lease_lost', seq: '1', mayHaveLanded: true },
      { kind: 'dead', seq: '2' },
    ])
    expect(settler.settled).toMatchObject({ dead: 1, lost: 1 })
  })

  test('that is refused for one is found by halves', async () => {
    const { summary, answerAll, told, before, ended } = await quarantined('1', '2')
    await answerAll(({ seqs }) => (seqs.includes('2') ? badRow : null))

    expect(summary().slice(3)).toEqual(['1 2', '1', '2'].map((seqs) => `quarantine_dead ${seqs}`))
    expect(told.slice(before).map(({ kind }) => kind)).toEqual(['dead', 'dlq_written', 'settle_failed'])
    expect(ended).toEqual(['1', '2'])
  })

  // It writes the table of messages: without that, nothing works.
  test.each([refusal('42P01'), cut])(
    'that fails for another reason is tried until it works (%s)',
    async (error) => {
      const { sent, summary, pass, settler, ended, answerAll } = await quarantined('1', '2')
      await sent[3]!.fail(error)
      const isStuck = settler.isStuck
      await pass(100)
      await sent[4]!.answer()
      await answerAll()

      expect(summary().slice(3, 5)).toEqual(['quarantine_dead 1 2', 'quarantine_dead 1 2'])
      expect([isStuck, settler.isStuck, ended]).toEqual([true, false, ['1', '2']])
    },
  )

  test('that finds no row had lost its lease, and is not dead', async () => {
    const { sent, told, before, settler } = await quarantined('1')
    await sent[3]!.answer([])

    expect(told.slice(before)).toMatchObject([{ kind: 'lease_lost', phase: 'terminal' }])
    expect(settler.settled).toMatchObject({ dead: 0, lost: 1 })
  })
})

// U-DLQ-02
describe('the dead letters', () => {
  const all = [acked('1'), followed('2'), released('3'), snoozed('4'), failed('5'), dead('6')]

  test('are named by a burial, and by nothing else: success never touches them', async () => {
    const { settle, sent, answerAll } = scriptedSettler()
    await settle(all)
    await answerAll()

    expect(sent.filter(({ text }) => text.includes(names.dead)).map(({ name }) => name)).toEqual([
      'bury_dead',
    ])
    expect(sent).toHaveLength(6)
  })

  test('are not named by a quarantine: they may be what is missing', async () => {
    const { settle, sent, answerAll, giveUp } = scriptedSettler()
    giveUp.abort()
    await settle([dead('1')])
    await answerAll(({ name }) => (name === 'bury_dead' ? refusal('42P01') : null))

    expect(sent.at(-1)?.name).toBe('quarantine_dead')
    expect(sent.at(-1)?.text).not.toContain(names.dead)
  })

  // There is no other table that could be at fault: without this one, nothing works.
  test.each(['42P01', '42501'].map(refusal))(
    "'discard': what is missing for all refuses no burial: it is tried until it works (%s)",
    async (error) => {
      const { settle, sent, summary, pass, settler, told } = scriptedSettler({ deadLetters: 'discard' })
      await settle([dead('1'), dead('2')])
      await sent[0]!.fail(error)
      const isStuck = settler.isStuck
      await pass(100)
      await sent[1]!.answer()

      expect(summary()).toEqual(Array(2).fill('delete_acked 1 2'))
      expect([isStuck, settler.isStuck, settler.settled.dead]).toEqual([true, false, 2])
      expect(told[1]).toMatchObject({ kind: 'settle_failed', write: 'bury', messages: 2 })
    },
  )

  test("'discard': a row that cannot be deleted is quarantined, and told to be where the dead letters are looked for", async () => {
    const { settle, sent, summary, pass, told, settler } = scriptedSettler({ deadLetters: 'discard' })
    await settle([dead('1')])
    for (const [index, delayMs] of [1_000, 2_000, 0].entries()) {
      await sent[index]!.fail(badRow)
      await pass(delayMs)
    }
    await sent[3]!.answer()

    expect(summary()).toEqual([...Array(3).fill('delete_acked 1'), 'quarantine_dead 1'])
    expect(told.slice(3)).toMatchObject([
      { kind: 'dead', seq: '1', reason: 'rejected' },
      { kind: 'dlq_written', seq: '1', reason: 'rejected', isQuarantined: true },
    ])
    expect(settler.settled.dead).toBe(1)
  })

  test("'discard': none is written or told; the message is deleted, and dead", async () => {
    const { settle, sent, summary, answerAll, told, settler } = scriptedSettler({ deadLetters: 'discard' })
    await settle([...all, dead('7')])
    await answerAll()

    expect(summary().at(-1)).toBe('delete_acked 6 7')
    expect(sent.some(({ text }) => text.includes(names.dead))).toBe(false)
    expect(told.slice(-2)).toMatchObject([
      { kind: 'dead', seq: '6', reason: 'rejected', error: thrown },
      { kind: 'dead', seq: '7' },
    ])
    expect(told.some(({ kind }) => kind === 'dlq_written')).toBe(false)
    expect(settler.settled).toMatchObject({ acked: 2, dead: 2 })
  })
})
