import { describe, expect, test } from 'vitest'
import { each, leaseOf, subscriptionOf } from '../../../../tests/support/delivery-bench.ts'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { recordedEvents } from '../../../../tests/support/recorded-events.ts'
import { describerOf } from '../core/describe-error.ts'
import { LeaseLostError } from '../core/errors.ts'
import type { Outcome } from '../core/outcome.ts'
import { createHand } from './hand.ts'
import type { Held } from './held.ts'
import type { Written } from './settling.ts'

const ack: Outcome = { kind: 'ack', followOns: [] }
const idle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A hand with one desk; a lease notes the reasons that its handler is told to give up for. */
function handOf() {
  const settled: { readonly token: string; readonly done: (written: Written) => void }[] = []
  const counts = { emptied: 0, lost: 0 }
  const { teller, told } = recordedEvents()
  const hand = createHand({
    settler: {
      settle: ({ lease: { token } }, _, done) => void settled.push({ token, done }),
      countLost: () => {
        counts.lost++
      },
      transacted: () => {},
    },
    clock: fakeClock(),
    teller,
    describe: describerOf(undefined),
    putBack: () => {},
    emptied: () => {
      counts.emptied++
    },
  })
  const claimed = (seq: string, token: string) => {
    const reasons: unknown[] = []
    const one: Held = leaseOf({ seq, token, attempt: 2, deliveries: 3 })
    one.abort = (reason) => void reasons.push(reason)
    hand.hold([one])
    return { one, reasons }
  }
  const desk = hand.desk(subscriptionOf(each(() => {})))
  return { hand, desk, claimed, settled, counts, told }
}

const lostOf = (seq: string) => ({
  kind: 'lease_lost',
  queue: 'orders',
  id: `id-${seq}`,
  seq,
  attempt: 2,
  deliveries: 3,
  phase: 'running',
  mayHaveLanded: false,
  durationMs: null,
})

// Its lease had ended before it could be renewed, as after a pause of the process: our own claim is what took it over.
describe('a message that is claimed again while it is in hand', () => {
  test('is lost to the first delivery: its handler is told to give up, and it is said once', () => {
    const { claimed, told } = handOf()
    const older = claimed('1', 'first')
    const newer = claimed('1', 'second')

    expect([older.one.isLost, newer.one.isLost]).toEqual([true, false])
    expect(older.reasons).toEqual([expect.any(LeaseLostError)])
    expect(String(older.reasons[0])).toContain('message id-1 of "orders" ended, and it was claimed again')
    expect([newer.reasons, told]).toEqual([[], [lostOf('1')]])
  })

  test('is settled by the second delivery alone', async () => {
    const { hand, desk, claimed, settled, counts } = handOf()
    const [older, newer] = [claimed('1', 'first'), claimed('1', 'second')]
    desk.finished(older.one, ack, 5)
    desk.finished(newer.one, ack, 5)
    const during = [...hand.held]
    for (const { done } of settled) done({ kind: 'over', landed: true })
    await idle()

    expect(settled.map(({ token }) => token)).toEqual(['second'])
    expect([during, hand.held.size, counts]).toEqual([[newer.one], 0, { emptied: 1, lost: 1 }])
  })

  test('a third time, is lost to the second, though the first has ended meanwhile', () => {
    const { desk, claimed, told } = handOf()
    const [first, second] = [claimed('1', 'first'), claimed('1', 'second')]
    desk.finished(first.one, ack, 5)
    const third = claimed('1', 'third')

    expect([second.one.isLost, third.one.isLost]).toEqual([true, false])
    expect([second.reasons.length, told]).toEqual([1, [lostOf('1'), lostOf('1')]])
  })

  // Of what is being written, that write tells.
  test('is not lost to one whose end is being written', () => {
    const { desk, claimed, told } = handOf()
    const older = claimed('1', 'first')
    desk.finished(older.one, ack, 5)
    claimed('1', 'second')

    expect([older.one.isLost, older.reasons, told]).toEqual([false, [], []])
  })

  test('is not told a second time when it was known to be lost', () => {
    const { claimed, told } = handOf()
    const older = claimed('1', 'first')
    older.one.isLost = true
    claimed('1', 'second')

    expect([older.reasons, told]).toEqual([[], []])
  })

  test('is nothing to its neighbours, nor after it has been let go of', async () => {
    const { desk, claimed, settled, told } = handOf()
    const [one, other] = [claimed('1', 'first'), claimed('2', 'first')]
    desk.finished(one.one, ack, 5)
    for (const { done } of settled) done({ kind: 'over', landed: true })
    await idle()
    // As when it was put back, and is due again.
    one.one.isEnding = false
    claimed('1', 'second')

    expect([one.one.isLost, other.one.isLost, other.reasons, told]).toEqual([false, false, [], []])
  })
})
