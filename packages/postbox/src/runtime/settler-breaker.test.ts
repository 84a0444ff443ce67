import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { badRow, cut, refusal, scriptedSettler } from '../../../../tests/support/scripted-settler.ts'
import { acked, dead, failed, followed } from '../../../../tests/support/settlements.ts'

const diskFull = refusal('53100')

beforeEach(() => {
  vi.spyOn(Math, 'random').mockReturnValue(0)
})

afterEach(() => {
  vi.restoreAllMocks()
})

/** What was told of the breaker itself. */
function breakerOf({ told }: ReturnType<typeof scriptedSettler>): unknown[] {
  return told.filter(({ kind }) => kind === 'breaker_opened' || kind === 'breaker_closed')
}

describe('the breaker', () => {
  // What is still to be written may have outlived its lease: a claim would take our own messages, and run them again.
  test('closes when everything that waited is written, not with the first statement that succeeds', async () => {
    const { settler, settle, sent, pass } = scriptedSettler()
    await settle(
      ['1', '2', '3'].map((seq) => acked(seq)),
      1,
    )
    await sent[0]!.fail(diskFull)
    await pass(50)
    const stuck: boolean[] = [settler.isStuck]
    for (let n = 1; n <= 3; n++) {
      await sent[n]!.answer([])
      stuck.push(settler.isStuck)
    }

    expect(stuck).toEqual([true, true, true, false])
  })

  test('is stuck from the first failure until the next success, and has the engine look at both', async () => {
    const { settle, sent, pass, settler, looks } = scriptedSettler()
    const seen = [settler.isStuck]
    await settle([acked('1')])
    await sent[0]!.fail(cut)
    seen.push(settler.isStuck)
    await pass(50)
    seen.push(settler.isStuck)
    await sent[1]!.answer()
    seen.push(settler.isStuck)

    expect(seen).toEqual([false, true, true, false])
    expect(looks).toEqual([true, false])
  })

  test('is told of once when it opens and once when it closes, however many writes failed', async () => {
    const scripted = scriptedSettler()
    const { settle, sent, pass } = scripted
    await settle([acked('1'), failed('2')])
    await sent[0]!.fail(diskFull)
    await pass(50)
    await sent[1]!.fail(cut)
    await pass(100)
    await sent[2]!.answer()
    await sent[3]!.fail(cut)
    await pass(50)
    const before = breakerOf(scripted)
    await sent[4]!.answer()

    expect(before).toEqual([{ kind: 'breaker_opened', error: diskFull }])
    expect(breakerOf(scripted)).toEqual([...before, { kind: 'breaker_closed' }])
  })

  test('is told of anew when it opens anew', async () => {
    const scripted = scriptedSettler()
    const { settle, sent, pass } = scripted
    for (const [round, error] of [diskFull, cut].entries()) {
      await settle([acked(`${round}`)])
      await sent[2 * round]!.fail(error)
      await pass(50)
      await sent[2 * round + 1]!.answer()
    }

    expect(breakerOf(scripted)).toEqual([
      { kind: 'breaker_opened', error: diskFull },
      { kind: 'breaker_closed' },
      { kind: 'breaker_opened', error: cut },
      { kind: 'breaker_closed' },
    ])
  })

  test('is not told of while all goes well', async () => {
    const scripted = scriptedSettler()
    await scripted.settle([acked('1'), failed('2'), dead('3')])
    await scripted.answerAll()

    expect(breakerOf(scripted)).toEqual([])
    expect(scripted.looks).toEqual([false])
  })

  test.each([acked, failed, followed, dead])('stays closed when a row is refused (case %#)', async (kind) => {
    const scripted = scriptedSettler()
    await scripted.settle([kind('1')])
    await scripted.sent[0]!.fail(badRow)

    expect(breakerOf(scripted)).toEqual([])
    expect(scripted.looks).not.toContain(true)
  })

  // Nothing has shown that the database takes writes again: a claim would take messages that nobody can settle.
  test('stays open when all that it opened for is given up', async () => {
    const scripted = scriptedSettler()
    const { settle, sent, giveUp, settler } = scripted
    giveUp.abort()
    await settle([acked('1'), failed('2')])
    await sent[0]!.fail(cut)
    await sent[1]!.fail(cut)

    expect(breakerOf(scripted)).toEqual([{ kind: 'breaker_opened', error: cut }])
    expect([settler.isStuck, scripted.looks]).toEqual([true, [true, true]])
  })

  test.each([
    ['written', null],
    ['refused', badRow],
  ])('closes when one of those is %s: the database answers', async (_, error) => {
    const scripted = scriptedSettler()
    const { settle, sent, giveUp, settler } = scripted
    giveUp.abort()
    await settle([acked('1'), failed('2')])
    await sent[0]!.fail(cut)
    await (error === null ? sent[1]!.answer() : sent[1]!.fail(error))

    expect(breakerOf(scripted)).toEqual([{ kind: 'breaker_opened', error: cut }, { kind: 'breaker_closed' }])
    expect(settler.isStuck).toBe(false)
  })

  test('what was written before it opened does not close it', async () => {
    const scripted = scriptedSettler()
    const { settle, sent, giveUp, settler } = scripted
    await settle([acked('1')])
    await sent[0]!.answer()
    giveUp.abort()
    await settle([acked('2')])
    await sent[1]!.fail(cut)

    expect([breakerOf(scripted).length, settler.isStuck]).toEqual([1, true])
  })
})
