// Timers, which have a name that one may hold, and dead letters, which come back once.
import { deadLetter, message, timer } from './given.ts'
import {
  ack,
  ackWithFollowOn,
  anHourPasses,
  begin,
  bury,
  cancel,
  claim,
  claimAsBefore,
  commit,
  publish,
  quarantine,
  release,
  replay,
  retry,
  rollback,
  snooze,
} from './steps.ts'
import type { Scenario } from './terms.ts'

const arm = (number: number) => publish(number, { timer: 't' })
const replace = (number: number) => publish(number, { timer: 't', conflict: 'replace' })

const timers: readonly Scenario[] = [
  {
    key: 'cancel-claim',
    title: 'a timer that is cancelled and claimed',
    given: [timer(1, 't')],
    programs: { A: [begin, cancel('t'), rollback, cancel('t')], B: [claim(), retry(), cancel('t')] },
  },
  {
    key: 'cancel-replace',
    title: 'a timer that is cancelled and replaced',
    given: [timer(1, 't')],
    programs: { A: [begin, cancel('t'), commit], B: [begin, replace(2), rollback, replace(3)] },
  },
  {
    key: 'replace-claim',
    title: 'a timer that is replaced and claimed',
    given: [timer(1, 't')],
    programs: { A: [begin, replace(2), commit, replace(3)], B: [claim(), retry(), ack] },
  },
  {
    key: 'replace-claim-before',
    title: 'a timer that is replaced, cancelled, and claimed by a process of the version before',
    given: [timer(1, 't')],
    programs: { A: [replace(2), cancel('t'), replace(3)], B: [claimAsBefore, quarantine, claim()] },
  },
  {
    key: 'arm-arm',
    title: 'a name that two arm, and one of them rolls back',
    given: [],
    programs: { A: [begin, arm(1), rollback, arm(3)], B: [begin, arm(2), commit, cancel('t')] },
  },
  {
    key: 'arm-retry',
    title: 'a timer that takes its name back while another is armed, and gives up waiting',
    given: [timer(1, 't')],
    programs: {
      A: [claim(), retry({ names: 'named, impatient' }), retry({ names: 'nameless' })],
      B: [begin, arm(2), commit, claim()],
    },
  },
  {
    key: 'arm-snooze',
    title: 'a timer that waits for its name until who is arming another has ended',
    given: [timer(1, 't')],
    programs: {
      A: [claim(), snooze(), snooze({ names: 'nameless' }), cancel('t')],
      B: [begin, arm(2), rollback],
    },
  },
  {
    key: 'release-claim',
    title: 'a timer that is given back while others claim and cancel',
    given: [timer(1, 't')],
    programs: { A: [claim(), release(), claim()], B: [anHourPasses, claim(), cancel('t')] },
  },
  {
    key: 'rearm',
    title: 'a handler that arms its own timer again, and somebody who is arming it',
    given: [timer(1, 't')],
    programs: { A: [claim(), ackWithFollowOn(2, 't'), cancel('t')], B: [begin, arm(3), commit, claim()] },
  },
  {
    key: 'cross-cancel',
    title: 'two who cancel two timers in opposite orders',
    given: [timer(1, 't'), timer(2, 'u')],
    programs: {
      A: [begin, cancel('t'), cancel('u'), commit],
      B: [begin, cancel('u'), cancel('t'), commit],
    },
  },
]

const places = ['dead', 'quarantined'] as const

const replays: readonly Scenario[] = places.flatMap((place) => [
  {
    key: `replay-replay-${place}`,
    title: `two operators who replay a message that is ${place}, and who claims it`,
    given: [deadLetter(place, 1)],
    programs: { A: [begin, replay(1), commit], B: [replay(1), claim()] },
  },
  {
    key: `replay-rollback-${place}`,
    title: `an operator who rolls back the replay of a message that is ${place}, and another`,
    given: [deadLetter(place, 1)],
    programs: { A: [begin, replay(1), rollback], B: [begin, replay(1), commit, claim()] },
  },
  {
    key: `replay-arm-${place}`,
    title: `a replay of a timer that is ${place}, and another of its name`,
    given: [deadLetter(place, 1, 't')],
    programs: { A: [begin, arm(2), rollback, arm(3)], B: [replay(1), cancel('t'), replay(1)] },
  },
])

const burying: readonly Scenario[] = [
  {
    key: 'bury-replay',
    title: 'a burial by who may have lost the lease, and two operators',
    given: [message(1)],
    programs: { A: [claim(), bury, replay(1), claim()], B: [anHourPasses, claim(), bury, replay(1)] },
  },
  {
    key: 'quarantine-replay',
    title: 'a quarantine that is not committed yet, and an operator',
    given: [message(1)],
    programs: { A: [claim(), begin, quarantine, commit, claim()], B: [replay(1), claim(), ack] },
  },
]

export const timerScenarios: readonly Scenario[] = [...timers, ...replays, ...burying]

export const largeTimerScenarios: readonly Scenario[] = [
  {
    key: 'rearm-three',
    title:
      'a handler that arms its own timer again, one who takes it over, and somebody who arms and cancels it',
    given: [timer(1, 't')],
    programs: {
      A: [claim(), ackWithFollowOn(2, 't'), cancel('t')],
      // One at a time: two of a batch that want one name are refused together, and halved by the settler.
      B: [anHourPasses, claim(1), retry()],
      C: [begin, arm(3), commit],
    },
  },
  {
    key: 'three-names',
    title: 'three who arm, replace and cancel one name',
    given: [timer(1, 't')],
    programs: {
      A: [begin, cancel('t'), rollback],
      B: [begin, replace(2), commit],
      C: [claim(), retry(), ack],
    },
  },
  {
    key: 'cross-cancel-three',
    title: 'two who cancel two timers in opposite orders, and who claims them',
    given: [timer(1, 't'), timer(2, 'u')],
    programs: {
      A: [begin, cancel('t'), cancel('u'), commit],
      B: [begin, cancel('u'), cancel('t'), commit],
      C: [claim(), retry()],
    },
  },
  ...places.map((place) => ({
    key: `replay-three-${place}`,
    title: `three operators, of whom one rolls back, and a message that is ${place}`,
    given: [deadLetter(place, 1, 't')],
    programs: {
      A: [begin, replay(1), rollback],
      B: [begin, replay(1), commit],
      C: [replay(1), claim(), bury],
    },
  })),
  {
    key: 'bury-replay-three',
    title: 'a message that dies, comes back and dies again, and three who do it',
    given: [timer(1, 't')],
    programs: {
      A: [claim(), bury, replay(1)],
      B: [anHourPasses, claim(), quarantine],
      C: [replay(1), arm(2), replay(1)],
    },
  },
]
