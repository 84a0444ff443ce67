import { describe } from 'vitest'
import type { StoreKind } from '../support/stores.ts'
import { describeAfterDead, describeNotes } from './store-after-dead.ts'
import { useStore } from './store-bench.ts'
import { describeClaims } from './store-claims.ts'
import { describeCounts } from './store-counts.ts'
import { describeDeadLetters } from './store-dead-letters.ts'
import { describeDelivered } from './store-delivered.ts'
import { describeDiscarding } from './store-discarding.ts'
import { describeFencedSessions, describeFences } from './store-fences.ts'
import { describeFollowOns } from './store-follow-ons.ts'
import { describeFresh, describeFreshSessions } from './store-fresh.ts'
import { describeImpatience } from './store-impatience.ts'
import { describeInbox, describeInboxes } from './store-inbox.ts'
import { describeKeyWaits } from './store-key-waits.ts'
import { describeKeys } from './store-keys.ts'
import { describeLandings } from './store-landings.ts'
import { describeOperationWaits } from './store-operation-waits.ts'
import { describeReplayAll } from './store-operations.ts'
import { describeOrder } from './store-order.ts'
import { describeOrderWaits } from './store-order-waits.ts'
import { describeOutbox } from './store-outbox.ts'
import { describeEnds } from './store-outbox-ends.ts'
import { describePauses, describePausing, describePausingWaits } from './store-pausing.ts'
import { describePublishing } from './store-publishing.ts'
import { describeReplay } from './store-replay.ts'
import { describeSettling } from './store-settling.ts'
import { describeSuspects } from './store-suspects.ts'
import { describeTimers } from './store-timers.ts'
import { describeSessions, describeTransactions } from './store-transactions.ts'
import { describeWaits } from './store-waits.ts'
import { describeWaking } from './store-waking.ts'

/** What every store of an outbox does: the statements of the library one by one, with the same answers and the same rows after them; then an outbox. */
export function describeStore(kind: StoreKind): void {
  describe(kind.name, () => {
    const bench = useStore(kind)
    describe('publishing', () => describePublishing(bench))
    describe('timers', () => describeTimers(bench))
    describe('claiming', () => describeClaims(bench))
    describe('the least claim', () => describeFresh(bench))
    describe('suspects', () => describeSuspects(bench))
    describe('ordered queues', () => describeOrder(bench))
    describe('noting', () => describeNotes(bench))
    describe('settling', () => describeSettling(bench))
    describe('follow-ons', () => describeFollowOns(bench))
    describe('fences', () => describeFences(bench))
    describe('dead letters', () => describeDeadLetters(bench))
    describe('delivered messages', () => describeDelivered(bench))
    describe('replaying', () => describeReplay(bench))
    describe('replaying many', () => describeReplayAll(bench))
    describe('keys that wait', () => describeKeys(bench))
    describe('replaying in order', () => describeLandings(bench))
    describe('discarding', () => describeDiscarding(bench))
    describe('counting', () => describeCounts(bench))
    describe('pausing', () => describePausing(bench))
    describe('the inbox', () => describeInbox(bench))
    describe('waking', () => describeWaking(bench))
    describe('a transaction', () => describeTransactions(bench))
    if (kind.hasSessions) {
      describe('beside an open transaction', () => {
        describeSessions(bench)
        describeFencedSessions(bench)
        describeImpatience(bench)
        describeFreshSessions(bench)
      })
      describe('the inbox beside an open transaction', () => describeInboxes(bench))
      describe('behind an open transaction', () => describeWaits(bench))
      describe('an ordered queue beside an open transaction', () => describeOrderWaits(bench))
      describe('a key that waits', () => describeKeyWaits(bench))
      describe('an operation', () => describeOperationWaits(bench))
      describe('a pause beside an open transaction', () => describePausingWaits(bench))
    }
    describe('an outbox', () => {
      describeOutbox(bench)
      describeEnds(bench)
      describeAfterDead(bench)
      describePauses(bench)
    })
  })
}
