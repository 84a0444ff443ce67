// Queues in the order of their keys.
import { idOf } from './books.ts'
import { anHourPasses, begin, commit, rollback } from './steps.ts'
import {
  ackFirst,
  ackPublishing,
  claimBehind,
  claimFirsts,
  claimFresh,
  giveBack,
  join,
  parkFirst,
  publishTo,
  renewRest,
  retryFirst,
} from './steps-order.ts'
import type { Given, Scenario } from './terms.ts'

const ofKey = (number: number, key: string): Given => {
  return { place: 'live', id: idOf(number), timer: null, isDue: false, key }
}
const dueOf = (number: number, key: string): Given => ({ ...ofKey(number, key), isDue: true })
const timerOf = (number: number, key: string): Given => ({ ...dueOf(number, key), isJoining: true })

const ordered = { isOrdered: true } as const
const both = [ofKey(1, 'a'), ofKey(2, 'a')]
const three = [...both, ofKey(3, 'a')]

const publishing: readonly Scenario[] = [
  {
    ...ordered,
    key: 'order-publish',
    title: 'two who publish to one key, one of whom goes back on it, and a third message',
    given: [],
    programs: {
      A: [begin, publishTo('a', 1), commit],
      B: [begin, publishTo('a', 2), rollback, publishTo('a', 3)],
    },
  },
  {
    ...ordered,
    key: 'order-publish-commit',
    title: 'two who publish to one key, one of them twice, and commit in any order',
    given: [],
    programs: {
      A: [begin, publishTo('a', 1), publishTo('a', 2), commit],
      B: [begin, publishTo('a', 3), commit],
    },
  },
  {
    ...ordered,
    key: 'order-publish-crosswise',
    title: 'two who publish to two keys, one after the other, in opposite orders',
    given: [],
    programs: {
      A: [begin, publishTo('a', 1), publishTo('b', 2), commit],
      B: [begin, publishTo('b', 3), publishTo('a', 4), commit],
    },
  },
  {
    ...ordered,
    key: 'order-publish-claim',
    title: 'a message of a key that is published while the one before is claimed and settled',
    given: [ofKey(1, 'a')],
    programs: {
      A: [begin, publishTo('a', 2), commit],
      B: [claimFirsts(), ackFirst, claimBehind, ackFirst],
    },
  },
  {
    ...ordered,
    key: 'order-follow-on',
    title: 'a follow-on into a key that somebody is publishing to',
    given: [ofKey(1, 'a')],
    programs: {
      A: [begin, publishTo('b', 2), commit],
      B: [claimFirsts(1), ackPublishing('b', 3), claimFirsts(), ackFirst],
    },
  },
]

const claiming: readonly Scenario[] = [
  {
    ...ordered,
    key: 'order-claim-claim',
    title: 'two claims of one key, neither of them committed',
    given: three,
    programs: {
      A: [begin, claimFirsts(1), commit, ackFirst],
      B: [begin, claimFirsts(2), rollback, claimFresh()],
    },
  },
  {
    ...ordered,
    key: 'order-fresh',
    title: 'an ack of the first that is not committed, and is rolled back, while others look for the first',
    given: both,
    programs: {
      A: [claimFresh(1), begin, ackFirst, rollback],
      B: [claimFresh(1), ackFirst, claimBehind],
    },
  },
  {
    ...ordered,
    key: 'order-due',
    title: 'a message that is due and stands behind another, as one of before the queue was ordered',
    given: [ofKey(1, 'a'), dueOf(2, 'a')],
    programs: { A: [claimFirsts(1), ackFirst, claimBehind], B: [claimFresh(1), ackFirst] },
  },
  {
    ...ordered,
    key: 'order-hand-over',
    title: 'a key that goes on where its last message was settled, and another that looks for it, too',
    given: three,
    programs: {
      A: [claimFirsts(1), ackFirst, claimBehind, ackFirst],
      B: [claimFresh(1), ackFirst, claimBehind],
    },
  },
]

const settling: readonly Scenario[] = [
  {
    ...ordered,
    key: 'order-retry',
    title: 'the first of a key is to be tried later, and those behind it are given back',
    given: three,
    programs: {
      A: [claimFirsts(2), retryFirst(0.5), giveBack],
      B: [claimFirsts(), claimFresh(), anHourPasses, claimFirsts()],
    },
  },
  {
    ...ordered,
    key: 'order-park',
    title: 'the first of a key dies and holds it, and those behind it are given back',
    given: three,
    programs: {
      A: [claimFirsts(2), parkFirst, giveBack],
      B: [claimFresh(), anHourPasses, claimFirsts(), ackFirst],
    },
  },
  {
    ...ordered,
    key: 'order-takeover',
    title: 'leases of a whole run that end while its first is under way, and who takes it over',
    given: both,
    programs: {
      A: [claimFirsts(), ackFirst, ackFirst, giveBack],
      B: [anHourPasses, claimFirsts(), ackFirst, ackFirst],
    },
  },
  {
    ...ordered,
    key: 'order-half-takeover',
    title: 'the lease of the first ends, and those of the ones behind it do not',
    given: both,
    programs: {
      A: [claimFirsts(), renewRest, ackFirst, giveBack],
      B: [anHourPasses, claimFirsts(), ackFirst, claimBehind],
    },
  },
  {
    ...ordered,
    key: 'order-middle',
    title: 'a run of which one in the middle is being given back',
    given: three,
    programs: {
      A: [claimFirsts(2), begin, giveBack, commit],
      B: [anHourPasses, claimFirsts(), ackFirst],
    },
  },
]

const joining: readonly Scenario[] = [
  {
    ...ordered,
    key: 'order-join',
    title: 'a message that is due takes its place in a key that somebody is publishing to',
    given: [timerOf(1, 'a')],
    programs: { A: [begin, publishTo('a', 2), commit], B: [join, claimFirsts(1), ackFirst, join] },
  },
  {
    ...ordered,
    key: 'order-join-join',
    title: 'two who let a message that is due take its place',
    given: [ofKey(1, 'a'), timerOf(2, 'a')],
    programs: { A: [begin, join, commit, claimFirsts(1)], B: [claimFirsts(1), join, ackFirst, claimBehind] },
  },
]

export const orderScenarios: readonly Scenario[] = [...publishing, ...claiming, ...settling, ...joining]

export const largeOrderScenarios: readonly Scenario[] = [
  {
    ...ordered,
    key: 'order-three',
    title: 'three of a key, two who take them over from each other, and one who publishes',
    given: both,
    programs: {
      A: [claimFirsts(1), ackFirst, claimBehind],
      B: [anHourPasses, claimFirsts(), ackFirst],
      C: [begin, publishTo('a', 3), commit],
    },
  },
  {
    ...ordered,
    key: 'order-publish-three',
    title: 'three who publish to one key, one of them by a follow-on',
    given: [ofKey(1, 'b')],
    programs: {
      A: [begin, publishTo('a', 2), rollback],
      B: [begin, publishTo('a', 3), commit],
      C: [claimFirsts(), ackPublishing('a', 4), claimFirsts()],
    },
  },
  {
    ...ordered,
    key: 'order-join-three',
    title: 'a message that is due, who lets it take its place, who publishes, and who claims',
    given: [ofKey(1, 'a'), timerOf(2, 'a')],
    programs: {
      A: [begin, publishTo('a', 3), commit],
      B: [begin, join, commit],
      C: [claimFirsts(1), ackFirst, claimBehind],
    },
  },
]
