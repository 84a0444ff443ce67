import { expect, test } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { leased } from '../../../../tests/support/lease-bench.ts'
import { recordedEvents } from '../../../../tests/support/recorded-events.ts'
import { subscriptionOf } from '../../../../tests/support/runner-bench.ts'
import { describerOf } from '../core/describe-error.ts'
import { createHand } from './hand.ts'

test.each([
  { kind: 'committed', followOns: 2 } as const,
  { kind: 'unresolved', mayHaveLanded: true } as const,
])(
  'a message that its transaction has ended ($kind) is let go of, and nothing is written for it',
  (outcome) => {
    const transacted: unknown[] = []
    const hand = createHand({
      settler: {
        settle: () => expect.fail('it was written'),
        countLost: () => expect.fail('it was called lost'),
        transacted: (...told) => void transacted.push(told),
      },
      clock: fakeClock(),
      teller: recordedEvents().teller,
      describe: describerOf(undefined),
      putBack: () => {},
      emptied: () => {},
    })
    const one = leased(1)
    one.isLost = true
    hand.hold([one])
    hand.desk(subscriptionOf()).finished(one, outcome, 7)

    expect(transacted).toEqual([[one.lease, outcome, 7]])
    expect([...hand.held]).toEqual([])
  },
)
