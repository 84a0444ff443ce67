import { describe, expect, test } from 'vitest'
import {
  badRow,
  cut,
  names,
  refusal,
  scriptedSettler,
  settled,
} from '../../../../tests/support/scripted-settler.ts'
import { acked, dead, followed } from '../../../../tests/support/settlements.ts'

const keeping = () => scriptedSettler({ delivered: 'table', deadLetters: 'discard' })

describe('an acknowledgement where delivered messages are kept', () => {
  test('is one statement, as it is without; what is given up and discarded is not kept', async () => {
    const { settle, sent, summary, answerAll, settler } = keeping()
    await settle([acked('1'), acked('2'), followed('3'), dead('4')])
    await answerAll()

    expect(summary()).toEqual(['delete_acked 1 2', 'delete_with_follow_ons 3', 'delete_acked 4'])
    expect(sent.map(({ text }) => text.includes(names.delivered))).toEqual([true, true, false])
    expect(settler.settled).toMatchObject({ acked: 3, dead: 1 })
  })

  // Without the table nobody can say what was delivered: nothing is run on top of that, and nothing is run again.
  test.each(['42P01', '42501', '40001'].map(refusal))(
    'that fails for all is tried whole until it works, and nothing is claimed meanwhile (%s)',
    async (error) => {
      const { settle, sent, summary, pass, settler, told, ended } = keeping()
      await settle([acked('1'), acked('2')])
      await sent[0]!.fail(error)
      const before = [settler.isStuck, [...ended]]
      await pass(100)
      await sent[1]!.answer()

      expect(summary()).toEqual(Array(2).fill('delete_acked 1 2'))
      expect([before, settler.isStuck, ended]).toEqual([[true, []], false, ['1', '2']])
      expect(told.map(({ kind }) => kind)).toEqual([
        'breaker_opened',
        'settle_failed',
        'acked',
        'acked',
        'breaker_closed',
      ])
    },
  )

  test('with follow-ons, too, waits for a right that is missing: it may be that on the delivered messages', async () => {
    const { settle, sent, summary, pass, settler, written } = keeping()
    await settle([followed('1')])
    await sent[0]!.fail(refusal('42501'))
    const isStuck = settler.isStuck
    await pass(100)
    await sent[1]!.answer()

    expect(summary()).toEqual(Array(2).fill('delete_with_follow_ons 1'))
    expect([isStuck, written['1']]).toEqual([true, { kind: 'over', landed: true }])
  })

  test('that is refused for one row keeps its lease, is tried ever later, and does not hold its neighbours', async () => {
    const { settle, sent, summary, pass, told, clock, ended, settler, answerAll } = keeping()
    await settle([acked('1'), acked('2')])
    await answerAll(({ seqs }) => (seqs.includes('2') ? badRow : null))
    for (const delayMs of [1_000, 2_000, 4_000]) {
      await pass(delayMs)
      await sent.at(-1)!.fail(badRow)
    }
    const before = [...ended]
    await pass(8_000)
    await sent.at(-1)!.answer()

    expect(summary()).toEqual(['1 2', '1', '2', '2', '2', '2', '2'].map((seqs) => `delete_acked ${seqs}`))
    expect(clock.asked).toEqual([1_000, 2_000, 4_000, 8_000])
    expect(told.filter(({ kind }) => kind === 'settle_failed')).toEqual(
      [1_000, 2_000, 4_000, 8_000].map((delayMs) => ({
        ...{ kind: 'settle_failed', write: 'delete', messages: 1, error: badRow, delayMs },
        ...{ queue: 'orders', id: 'id-2', seq: '2' },
      })),
    )
    expect([before, ended, settler.settled.acked]).toEqual([['1'], ['1', '2'], 2])
  })

  test('that is refused when a stop has no more time is left to its lease, and says so', async () => {
    const { settle, sent, giveUp, told, ended, answerAll } = keeping()
    await settle([acked('1')])
    await sent[0]!.fail(badRow)
    giveUp.abort()
    await settled()
    await answerAll(() => badRow)

    expect(told.map((event) => ('delayMs' in event ? event.delayMs : event.kind))).toEqual([1_000, null])
    expect([sent.length, ended]).toEqual([2, ['1']])
  })

  test('whose follow-ons are refused fails as if they were not kept: the handler has published what cannot be', async () => {
    const { settle, sent, written } = keeping()
    await settle([followed('1')])
    await sent[0]!.fail(badRow)

    expect(written['1']).toEqual({ kind: 'refused', error: badRow })
  })

  test('whose answer was lost may have landed', async () => {
    const { settle, sent, pass, told } = keeping()
    await settle([acked('1')])
    await sent[0]!.fail(cut)
    await pass(100)
    await sent[1]!.answer([])

    expect(told.find(({ kind }) => kind === 'lease_lost')).toMatchObject({ mayHaveLanded: true })
  })
})
