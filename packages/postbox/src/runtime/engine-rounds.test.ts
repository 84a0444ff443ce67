// When all of several queues has been seen, some of them in several sweeps.
import { describe, expect, test } from 'vitest'
import { idle, kindsOf, queueOf, started } from '../../../../tests/support/engine-bench.ts'

/** Whether it has resolved, from now on. */
function emptyOf(engine: { untilEmpty(): Promise<void> }) {
  const empty = { isTold: false }
  void engine.untilEmpty().then(() => {
    empty.isTold = true
  })
  return empty
}

describe('rounds that differ in length', () => {
  const over = { round: { isOver: true, isEmpty: true } }
  const overBefore = { round: { isOver: false, isEmpty: true } }
  const goesOn = { round: { isOver: false, isEmpty: false } }

  async function bothAsleep() {
    const bench = await started(queueOf('orders'), queueOf('bills'))
    await bench.claims[0]!.find({ orders: over, bills: over })
    return bench
  }

  test('tell who waits that nothing is ready when the last has ended, though the others have begun their next', async () => {
    const { engine, claims } = await bothAsleep()
    const empty = emptyOf(engine)
    await idle()
    await claims[1]!.find({ orders: over, bills: goesOn })
    const before = empty.isTold
    await claims[2]!.find({ orders: overBefore, bills: over })

    expect([before, empty.isTold, kindsOf(claims)]).toEqual([false, true, ['sweep', 'sweep', 'sweep']])
  })

  test('a notification begins them anew while somebody waits: another process may have handed over what they have passed', async () => {
    const { engine, claims, claimer } = await bothAsleep()
    engine.notified('orders')
    const rounds = [claimer.rounds]
    await idle()
    await claims[1]!.find({ orders: over, bills: over })
    const empty = emptyOf(engine)
    await idle()
    engine.notified('labels')
    rounds.push(claimer.rounds)
    await claims[2]!.find({ orders: over, bills: goesOn })
    engine.notified('orders')
    rounds.push(claimer.rounds)
    // The fourth was under way by then; that the third has seen the end of one does not count for the fifth.
    await claims[3]!.find({ orders: overBefore, bills: goesOn })
    await claims[4]!.find({ orders: goesOn, bills: over })
    const before = [empty.isTold, claims.length]
    await claims[5]!.find({ orders: over, bills: overBefore })

    expect(rounds).toEqual([0, 1, 2])
    expect([before, empty.isTold]).toEqual([[false, 6], true])
  })

  test('while nobody waits, sweeping ends with the longest round, and what is owed next begins all of them anew', async () => {
    const { engine, claims, claimer, clock } = await bothAsleep()
    engine.oweSweep()
    await idle()
    await claims[1]!.find({ orders: over, bills: goesOn })
    const before = [claims.length, claimer.rounds]
    await claims[2]!.find({ orders: overBefore, bills: over })

    expect([before, claims.length, clock.left]).toEqual([[3, 0], 3, [5_000]])
    expect(claimer.rounds).toBe(1)
  })

  test('one that is under way in a queue without room is not begun anew: it would never end', async () => {
    const labels = queueOf('labels')
    const { claims, claimer } = await started(queueOf('orders'), queueOf('bills'), labels)
    labels.setRoom(0)
    await claims[0]!.find({ orders: over, bills: goesOn, labels: goesOn })
    await claims[1]!.find({ orders: overBefore, bills: over })

    expect([claims[1]!.demands.length, claims.length, claimer.rounds]).toEqual([2, 2, 0])
  })
})
