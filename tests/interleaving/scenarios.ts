// What is gone through in all its orders: races of claims, renewals and settlements. Those of timers and dead letters are in
// scenarios-timers.ts, of handlers' transactions in scenarios-transactional.ts, of ordered queues in scenarios-order.ts.
import { cursorScenario } from './cursor.ts'
import { dueMessage, message, suspect } from './given.ts'
import { largeOrderScenarios, orderScenarios } from './scenarios-order.ts'
import { largeTimerScenarios, timerScenarios } from './scenarios-timers.ts'
import { largeTransactionalScenarios, transactionalScenarios } from './scenarios-transactional.ts'
import {
  ack,
  ackWithFollowOn,
  anHourPasses,
  begin,
  bury,
  claim,
  claimFirst,
  commit,
  count,
  patient,
  pause,
  publish,
  quarantine,
  release,
  renew,
  resume,
  retry,
  rollback,
  snooze,
} from './steps.ts'
import type { Scenario, Step } from './terms.ts'

/** Somebody whose lease ends before he has written what became of the message, and another, who takes it over. */
function takenOver(key: string, settle: Step, next: Step = ack): Scenario {
  return {
    key: `${key}-reclaim`,
    title: `${settle.label} by a holder whose lease may have ended, and ${next.label} by who takes it over`,
    given: [message(1)],
    programs: { A: [claim(), settle, settle], B: [anHourPasses, claim(), next] },
  }
}

/** The same, while the write of the first is not committed: the second meets its lock. */
function takenOverMidway(key: string, settle: Step): Scenario {
  return {
    key: `${key}-midway`,
    title: `${settle.label} that is not committed yet, or is rolled back, when another comes for the message`,
    given: [dueMessage(1)],
    programs: {
      A: [claim(), begin, settle, rollback],
      B: [anHourPasses, claim(), ack],
    },
  }
}

const settling: readonly Scenario[] = [
  takenOver('ack', ack),
  takenOver('retry', retry()),
  takenOver('retry-later', retry({ delayHours: 0.5 }), bury),
  takenOver('snooze', snooze()),
  takenOver('release', release()),
  takenOver('bury', bury),
  takenOver('quarantine', quarantine),
  takenOver('follow-on', ackWithFollowOn(2), ackWithFollowOn(3)),
  takenOver('bury-bury', bury, bury),
  takenOverMidway('ack', ack),
  {
    key: 'rescue',
    title: 'a message that is being quarantined when its lease ends, and a sweep that looks for those',
    given: [message(1)],
    programs: { A: [claim(), begin, quarantine, commit], B: [anHourPasses, claim(), ack] },
  },
  {
    key: 'rescue-patient',
    title: 'the same, and a sweep of which nobody minds that it waits',
    given: [message(1)],
    programs: { A: [claim(), begin, quarantine, commit], B: [anHourPasses, patient(claim()), ack] },
  },
  takenOverMidway('retry', retry()),
]

const leasing: readonly Scenario[] = [
  {
    key: 'renew-reclaim',
    title: 'a renewal that comes before or after the end of the lease, or after another has taken it over',
    given: [message(1)],
    programs: { A: [claim(), renew, renew, ack], B: [anHourPasses, claim(), ack] },
  },
  {
    key: 'renew-midway',
    title: 'a renewal that is not committed yet when another comes for the message',
    given: [message(1)],
    programs: { A: [claim(), begin, renew, commit], B: [anHourPasses, claim(), ack] },
  },
  {
    key: 'ack-renew',
    title: 'a renewal while the ack of the same lease is not committed, or is rolled back',
    given: [message(1)],
    lanes: { B: 'A' },
    programs: { A: [claim(), begin, ack, rollback], B: [renew, anHourPasses, renew, ack] },
  },
  {
    key: 'claim-claim',
    title: 'two claims of one message each, not committed, and a sweep',
    given: [message(1), dueMessage(2)],
    programs: { A: [begin, claim(1), commit, ack], B: [begin, claim(1), rollback, claim(1)] },
  },
  {
    key: 'publish-claim',
    title: 'a message that is published and not committed while others publish and claim',
    given: [],
    programs: { A: [begin, publish(1), commit], B: [publish(2), claim(), ack, claim()] },
  },
]

const hasty: readonly Scenario[] = [
  {
    key: 'fresh-claim',
    title: 'two who take what is fresh, not committed, one that gives it back, and a sweep',
    given: [message(1), dueMessage(2)],
    programs: { A: [begin, claimFirst, commit, release()], B: [claimFirst, claim(), ack] },
  },
  {
    key: 'fresh-reclaim',
    title: 'one who takes what is fresh, and loses it to who comes after the end of his lease',
    given: [message(1)],
    programs: { A: [claimFirst, ack], B: [anHourPasses, claimFirst, claim(), count, ack] },
  },
  {
    key: 'fresh-pause',
    title:
      'a pause that is not committed yet, and its end, while somebody takes what is fresh and gives it back',
    given: [message(1)],
    programs: { A: [begin, pause, commit, resume], B: [claimFirst, release(), claimFirst, ack] },
  },
]

const pausing: readonly Scenario[] = [
  {
    key: 'pause-claim',
    title:
      'a pause that is not committed yet, and its end, while somebody claims, gives back and claims again',
    given: [message(1), dueMessage(2)],
    programs: { A: [begin, pause, commit, resume], B: [claim(), release(), claim(), ack] },
  },
  {
    key: 'pause-pause',
    title: 'two who pause and resume, of whom one has not committed yet',
    given: [message(1)],
    programs: { A: [begin, pause, commit, resume], B: [pause, resume, claim()] },
  },
]

const suspecting: readonly Scenario[] = [
  {
    key: 'count-reclaim',
    title: 'a suspect that is counted by a holder whose lease may have ended, and by who takes it over',
    given: [suspect(1)],
    programs: { A: [claim(), count, count, ack], B: [anHourPasses, claim(), count, ack] },
  },
  {
    key: 'count-release',
    title: 'a suspect that is given back before or after it is counted, and who takes it over does the same',
    given: [suspect(1)],
    programs: { A: [claim(), count, release()], B: [anHourPasses, claim(), release(), claim(), snooze()] },
  },
  {
    key: 'count-retry',
    title: 'a suspect that fails when it is run: what was in silence stays so',
    given: [suspect(1)],
    programs: { A: [claim(), count, retry()], B: [anHourPasses, claim(), count, retry()] },
  },
  {
    key: 'count-midway',
    title: 'a suspect whose count is not committed yet, or is rolled back, when another comes for it',
    given: [suspect(1)],
    programs: { A: [claim(), begin, count, rollback], B: [anHourPasses, claim(), count, ack] },
  },
]

/** On every run. */
export const scenarios: readonly Scenario[] = [
  ...settling,
  ...leasing,
  ...hasty,
  ...pausing,
  ...suspecting,
  ...timerScenarios,
  ...transactionalScenarios,
  ...orderScenarios,
]

/** More sessions, and time that passes whenever it likes: by `npm run test:large`. */
export const largeScenarios: readonly Scenario[] = [
  {
    key: 'three-holders',
    title: 'three who take a message over from each other, and end it in three ways',
    given: [message(1)],
    programs: {
      A: [claim(), retry(), ack],
      B: [anHourPasses, claim(), bury],
      C: [anHourPasses, claim(), snooze()],
    },
  },
  {
    key: 'two-messages',
    title: 'two messages, two workers that take one at a time, and time that passes whenever it likes',
    given: [message(1), dueMessage(2)],
    programs: {
      A: [claim(1), renew, ack, claim(1)],
      B: [claim(1), release(), claim(2), bury],
      T: [anHourPasses],
    },
  },
  {
    key: 'renew-midway-three',
    title: 'a renewal and an ack of one process, neither committed, and another that sweeps',
    given: [message(1)],
    lanes: { B: 'A' },
    programs: {
      A: [claim(), begin, ack, rollback],
      B: [begin, renew, commit],
      C: [anHourPasses, claim(), ack],
    },
  },
  {
    key: 'publish-three',
    title: 'messages that are published and not committed, or taken back, while others claim',
    given: [],
    programs: { A: [begin, publish(1), commit], B: [begin, publish(2), rollback], C: [claim(), ack] },
  },
  cursorScenario,
  ...largeTimerScenarios,
  ...largeTransactionalScenarios,
  ...largeOrderScenarios,
]
