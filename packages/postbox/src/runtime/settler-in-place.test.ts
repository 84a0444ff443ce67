import { describe, expect, test } from 'vitest'
import {
  badRow,
  cut,
  names,
  refusal,
  scriptedSettler,
  settled,
} from '../../../../tests/support/scripted-settler.ts'
import { acked, dead, thrown } from '../../../../tests/support/settlements.ts'

const inPlace = () => scriptedSettler({ deadLetters: 'in-place' })

describe('a burial where the message lies', () => {
  test('is one statement that names no other table, told once it is written', async () => {
    const { settle, sent, summary, told, settler } = inPlace()
    await settle([dead('1'), dead('2'), acked('3')])
    const before = [...told]
    await sent[0]!.answer()
    await sent[1]!.answer()

    expect(summary()).toEqual(['delete_acked 3', 'quarantine_dead 1 2'])
    expect(sent[1]?.text).not.toContain(names.dead)
    expect(before).toEqual([])
    expect(told.slice(1)).toMatchObject([
      { kind: 'dead', seq: '1', reason: 'rejected', error: thrown },
      { kind: 'dlq_written', seq: '1', isQuarantined: false },
      { kind: 'dead', seq: '2' },
      { kind: 'dlq_written', seq: '2', isQuarantined: false },
    ])
    expect(settler.settled).toMatchObject({ acked: 1, dead: 2 })
  })

  test('whose answer was lost is looked for among the messages, and told as dead once', async () => {
    const { settle, sent, summary, pass, told, settler } = inPlace()
    await settle([dead('1'), dead('2')])
    await sent[0]!.fail(cut)
    await pass(100)
    await sent[1]!.answer([])
    await sent[2]!.answer(['1'])

    expect(summary()).toEqual(['quarantine_dead 1 2', 'quarantine_dead 1 2', 'find_buried 1 2'])
    expect(sent[2]?.text).toContain(names.messages)
    expect(sent[2]?.text).not.toContain(names.dead)
    expect(told.filter(({ kind }) => kind === 'dead' || kind === 'lease_lost')).toMatchObject([
      { kind: 'dead', seq: '1' },
      { kind: 'lease_lost', seq: '2', mayHaveLanded: true },
    ])
    expect(settler.settled).toMatchObject({ dead: 1, lost: 1 })
  })

  // There is no other place for it, and nothing else that may become of it.
  test('that is refused is tried ever later until it works, and never becomes anything else', async () => {
    const { settle, sent, summary, pass, told, clock, ended, settler } = inPlace()
    const delays = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]
    await settle([dead('1')])
    for (const [index, delayMs] of delays.entries()) {
      await sent[index]!.fail(badRow)
      await pass(delayMs)
    }
    const before = [...ended]
    await sent[delays.length]!.answer()

    expect(new Set(summary())).toEqual(new Set(['quarantine_dead 1']))
    expect(clock.asked).toEqual(delays)
    expect(told.slice(0, -2)).toEqual(
      delays.map((delayMs) => ({
        ...{ kind: 'settle_failed', write: 'bury', messages: 1, error: badRow, delayMs },
        ...{ queue: 'orders', id: 'id-1', seq: '1' },
      })),
    )
    expect(told.slice(-2)).toMatchObject([{ kind: 'dead' }, { kind: 'dlq_written', isQuarantined: false }])
    expect([before, ended, settler.settled.dead]).toEqual([[], ['1'], 1])
  })

  test('that is refused for one row is found by halves, and does not hold its neighbours', async () => {
    const { settle, summary, answerAll, ended, settler, sent } = inPlace()
    await settle(['1', '2', '3'].map((seq) => dead(seq)))
    await answerAll(({ seqs }) => (seqs.includes('3') ? badRow : null))
    await settle([acked('4')])
    await sent.at(-1)!.answer()

    expect(summary()).toEqual([
      ...['1 2 3', '1 2', '3'].map((seqs) => `quarantine_dead ${seqs}`),
      'delete_acked 4',
    ])
    expect([ended, settler.isStuck]).toEqual([['1', '2', '4'], false])
  })

  test('that is refused when a stop has no more time is left to its lease, and says so', async () => {
    const { settle, sent, giveUp, told, ended, clock, answerAll } = inPlace()
    await settle([dead('1')])
    await sent[0]!.fail(badRow)
    giveUp.abort()
    await settled()
    await answerAll(() => badRow)

    expect(sent).toHaveLength(2)
    expect(told.map((event) => ('delayMs' in event ? event.delayMs : event.kind))).toEqual([1_000, null])
    expect([ended, clock.left]).toEqual([['1'], []])
  })

  // It writes the table of messages: without that, nothing works.
  test.each(['42P01', '42501', '40001'].map(refusal))(
    'that fails for all is tried whole until it works, and nothing is claimed meanwhile (%s)',
    async (error) => {
      const { settle, sent, summary, pass, settler } = inPlace()
      await settle([dead('1'), dead('2')])
      await sent[0]!.fail(error)
      const isStuck = settler.isStuck
      await pass(100)
      await sent[1]!.answer()

      expect(summary()).toEqual(Array(2).fill('quarantine_dead 1 2'))
      expect([isStuck, settler.isStuck, settler.settled.dead]).toEqual([true, false, 2])
    },
  )
})

describe('writes that are refused one by one', () => {
  const many = Array.from({ length: 1_000 }, (_, index) => dead(String(index + 1)))

  test('stop the claims when a thousand of them wait, and let them go on when one is through', async () => {
    const { settle, answerAll, settler, pass, told } = inPlace()
    await settle(many.slice(1))
    await answerAll(() => badRow)
    const below = settler.isStuck
    await settle(many.slice(0, 1))
    await answerAll(() => badRow)
    const above = settler.isStuck
    await pass(1_000)
    await answerAll(({ seqs }) => (seqs.includes('7') ? badRow : null))

    expect([below, above, settler.isStuck]).toEqual([false, true, false])
    expect(told.filter(({ kind }) => kind.startsWith('breaker')).map(({ kind }) => kind)).toEqual([
      'breaker_opened',
      'breaker_closed',
    ])
    expect(settler.settled.dead).toBe(999)
  })
})
