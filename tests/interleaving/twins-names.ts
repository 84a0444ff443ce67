// Timers and replays without a guard.
import { replaceOnce } from './replace-once.ts'
import type { Twin } from './twin.ts'

const undercut = 'a running message is not undercut'
const fails = 'no step fails'

const timers: readonly Twin[] = [
  {
    key: 'cancel-leased',
    guard:
      'a timer whose lease somebody holds is not cancelled (one that a process of the version before has claimed still has its name)',
    breaks: { cancel_timer: (text) => replaceOnce(text, '   and lease_token is null\n', '') },
    scenario: 'replace-claim-before',
    promise: undercut,
  },
  {
    key: 'cancel-failed',
    guard: 'a timer that has failed in place is not cancelled',
    breaks: { cancel_timer: (text) => replaceOnce(text, '   and failed_at is null\n', '') },
    scenario: 'replace-claim-before',
    promise: 'only a waiting timer is cancelled',
  },
  {
    key: 'replace-leased',
    guard:
      'a timer whose lease somebody holds is not replaced (one that a process of the version before has claimed still has its name)',
    breaks: {
      insert_message: (text) =>
        text.includes('do update') ? replaceOnce(text, 'where m.lease_token is null', '') : text,
    },
    scenario: 'replace-claim-before',
    promise: undercut,
  },
  {
    key: 'take-taken-name',
    guard: 'a timer that goes back to waiting takes its name only if nobody has it',
    breaks: {
      reschedule_retried: (text) =>
        replaceOnce(text, 'case when t.seq is null then m.fired_timer_id end', 'm.fired_timer_id'),
    },
    scenario: 'arm-retry',
    promise: fails,
  },
]

const replays: readonly Twin[] = [
  {
    key: 'replay-unlocked',
    guard: 'a replay locks the dead letter, and finds that it is gone',
    breaks: {
      replay_dead_letter: (text) => replaceOnce(text, /(?<=place = 'moved'\))\n +for update/, ''),
    },
    scenario: 'replay-replay-dead',
    promise: 'a dead letter is replayed once',
  },
  {
    key: 'replay-lost',
    guard: 'a dead letter goes only if its message has come back',
    breaks: {
      replay_dead_letter: (text) =>
        replaceOnce(text, /(?<=place = 'moved'\))\n +and exists \(select from moved\)/, ''),
    },
    scenario: 'replay-arm-dead',
    promise: 'no message is lost',
  },
  {
    key: 'replay-over-timer',
    guard: 'a replay leaves a waiting timer its name',
    breaks: { replay_dead_letter: (text) => replaceOnce(text, /on conflict .* do nothing/, '') },
    scenario: 'replay-arm-dead',
    promise: fails,
  },
  {
    key: 'free-unlocked',
    guard: 'a replay locks what is quarantined',
    breaks: {
      replay_dead_letter: (text) => replaceOnce(text, /(?<=and failed_at is not null)\n +for update/, ''),
    },
    scenario: 'replay-replay-quarantined',
    promise: 'a dead letter is replayed once',
  },
  {
    key: 'free-unchecked',
    guard: 'a replay looks again whether it is still quarantined',
    breaks: {
      replay_dead_letter: (text) => replaceOnce(text, /\n +and failed_at is not null(?=\n +for update)/, ''),
    },
    scenario: 'replay-replay-quarantined',
    promise: 'a dead letter is replayed once',
  },
  {
    key: 'free-over-timer',
    guard: 'a replay of what is quarantined leaves a waiting timer its name',
    breaks: {
      replay_dead_letter: (text) => replaceOnce(text, /\n +and \(r\.is_named or r\.lands = 'in_place'\)/, ''),
    },
    scenario: 'replay-arm-quarantined',
    promise: 'a timer’s name has one holder',
  },
]

export const nameTwins: readonly Twin[] = [...timers, ...replays]
