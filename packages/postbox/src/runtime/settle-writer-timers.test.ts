import { describe, expect, test } from 'vitest'
import { badRow, refusal, scriptedSettler, settled } from '../../../../tests/support/scripted-settler.ts'
import { acked, arming, dead, followed } from '../../../../tests/support/settlements.ts'

const taking = refusal('55P03')
const refused = { kind: 'refused', error: taking }
const over = { kind: 'over', landed: true }

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

const following = (...seqs: readonly string[]): string[] => seqs.map((own) => `delete_with_follow_ons ${own}`)

const upTo = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index + 1}`)

// Somebody has inserted a timer of that name, and not committed yet.
describe('a timer that follows a message, whose name somebody is about to take', () => {
  test('is armed after 1 s or 2 s; the third time it is refused', async () => {
    const { settle, sent, summary, pass, clock, told, written, looks } = scriptedSettler()
    await settle([arming('1')])
    await sent[0]!.fail(taking)
    await pass(999)
    const early = sent.length
    await pass(1)
    await sent[1]!.fail(taking)
    await pass(2_000)
    const before = { ...written }
    await sent[2]!.fail(taking)

    expect([early, summary()]).toEqual([1, following('1', '1', '1')])
    expect(clock.asked).toEqual([1_000, 2_000])
    expect(told).toEqual([1_000, 2_000].map((delayMs) => postponedOf('1', delayMs)))
    expect([before, written]).toEqual([{}, { 1: refused }])
    expect([clock.left, looks.includes(true)]).toEqual([[], false])
  })

  test('is written as any other once that is free', async () => {
    const { settle, sent, pass, told, written, settler } = scriptedSettler()
    await settle([arming('1')])
    await sent[0]!.fail(taking)
    await pass(1_000)
    await sent[1]!.answer()

    expect(told.slice(1)).toMatchObject([{ kind: 'acked', seq: '1', followOns: 1 }])
    expect([written, settler.settled.acked]).toEqual([{ 1: over }, 1])
  })

  // By halves, everybody would wait a little for each of them.
  test('puts its whole batch off, which then comes in quarters: those that have nothing to do with it get through', async () => {
    const { settle, summary, answerAll, pass, told, ended, written } = scriptedSettler({ isHeard: false })
    const withSix = (seqs: readonly string[]): Error | null => (seqs.includes('6') ? taking : null)
    await settle(upTo(8).map((seq) => arming(seq)))
    await answerAll(({ seqs }) => withSix(seqs))
    const before = [...ended]
    await pass(1_000)
    await answerAll(({ seqs }) => withSix(seqs))

    expect(summary()).toEqual(following('1 2 3 4 5 6 7 8', '1 2', '3 4', '5 6', '7 8'))
    expect([before, ended.toSorted()]).toEqual([[], ['1', '2', '3', '4', '7', '8']])
    expect(told.slice(0, 8)).toEqual(upTo(8).map((seq) => postponedOf(seq, 1_000)))
    expect(told.slice(8)).toEqual(['5', '6'].map((seq) => postponedOf(seq, 2_000)))
    await pass(2_000)
    await answerAll(({ seqs }) => withSix(seqs))

    expect(summary().slice(5)).toEqual(following('5', '6'))
    expect([written['5'], written['6']]).toEqual([over, refused])
  })

  test('holds nobody: what arms no timer is written meanwhile, and nothing is stuck', async () => {
    const { settle, summary, answerAll, told, ended, looks } = scriptedSettler({ isHeard: false })
    await settle([followed('1'), arming('2'), followed('3')])
    await answerAll(({ seqs }) => (seqs.includes('2') ? taking : null))
    await settle([acked('4'), arming('5')])
    await answerAll()

    expect(summary()).toEqual([...following('1 3', '2'), 'delete_acked 4', ...following('5')])
    expect(told).toEqual([postponedOf('2', 1_000)])
    expect([ended, looks.includes(true)]).toEqual([['1', '3', '4', '5'], false])
  })

  test('counts its own tries: a newer one that joins it is not refused with it', async () => {
    const { settle, sent, summary, pass, written, told } = scriptedSettler()
    await settle([arming('1')], 1)
    await sent[0]!.fail(taking)
    await pass(1_000)
    await sent[1]!.fail(taking)
    // Meanwhile something else is written, so that both wait for its end.
    await settle([acked('9')])
    await pass(2_000)
    await settle([arming('2')], 1)
    await sent[2]!.answer()
    await sent[3]!.fail(taking)
    await sent[4]!.fail(taking)

    expect(summary().slice(3)).toEqual(following('1', '2'))
    expect(written).toEqual({ 1: refused, 9: over })
    expect(told.at(-1)).toEqual(postponedOf('2', 1_000))
  })

  test('counts its own tries, also beside a newer one in one statement', async () => {
    const { settle, sent, summary, pass, answerAll, written, told } = scriptedSettler()
    const with20 = (seqs: readonly string[]): Error | null => (seqs.includes('20') ? taking : null)
    await settle(upTo(20).map((seq) => arming(seq)))
    await answerAll(({ seqs }) => with20(seqs))
    await pass(1_000)
    await answerAll(({ seqs }) => with20(seqs))
    // Meanwhile something else is written, so that all wait for its end.
    await settle([acked('99')])
    await pass(2_000)
    await settle([arming('21')], 2)
    await sent[5]!.answer()
    await answerAll(({ seqs }) => with20(seqs))

    expect(summary().slice(1)).toEqual([
      ...following('1 2 3 4 5', '6 7 8 9 10', '11 12 13 14 15', '16 17 18 19 20'),
      'delete_acked 99',
      ...following('16 17', '18 19', '20 21'),
    ])
    expect([written['20'], written['21'], told.at(-1)]).toEqual([
      refused,
      undefined,
      postponedOf('21', 1_000),
    ])
  })

  test('and that has waited is refused at once by whatever stays wrong', async () => {
    const { settle, sent, pass, written, clock } = scriptedSettler()
    await settle([arming('1')])
    await sent[0]!.fail(taking)
    await pass(1_000)
    await sent[1]!.fail(badRow)

    expect([written, clock.left]).toEqual([{ 1: { kind: 'refused', error: badRow } }, []])
  })

  test('is not refused by what passes: that counts for nothing', async () => {
    const { settle, sent, summary, pass, written } = scriptedSettler()
    await settle([arming('1')])
    for (let tries = 0; tries < 5; tries++) {
      await sent[tries]!.fail(tries === 2 ? taking : refusal('40001'))
      await pass(30_000)
    }
    await sent[5]!.answer()

    expect(summary()).toHaveLength(6)
    expect(written).toEqual({ 1: over })
  })

  test('does not delay a stop: it is tried and refused without waiting', async () => {
    const { settle, sent, giveUp, answerAll, written, clock } = scriptedSettler()
    await settle([arming('1')])
    await sent[0]!.fail(taking)
    giveUp.abort()
    await settled()
    await answerAll(() => taking)

    expect([sent.length, clock.left]).toEqual([3, []])
    expect(written).toEqual({ 1: refused })
  })
})

describe('what is put off', () => {
  // Node warns of a leak at the eleventh.
  test.each([
    ['timers', arming, taking],
    ['burials', dead, badRow],
  ] as const)('waits with one listener for the stop, however much it is (%s)', async (_, kind, error) => {
    const { settle, answerAll, giveUp, clock } = scriptedSettler()
    const listened: string[] = []
    giveUp.signal.addEventListener = (type: string) => void listened.push(type)
    await settle(
      upTo(30).map((seq) => kind(seq)),
      1,
    )
    await answerAll(() => error)

    expect([clock.left.length, listened]).toEqual([30, []])
  })
})
