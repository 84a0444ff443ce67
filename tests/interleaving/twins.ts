// Broken twins: a statement with one of its guards taken out. Each must be found out by a scenario, or the tester could not tell a race
// from its absence. Some do what other systems do (see there); some guards are a second lock on the same door, and say so.
import { replaceOnce } from './replace-once.ts'
import type { Twin } from './twin.ts'
import { claimTwins } from './twins-claims.ts'
import { nameTwins } from './twins-names.ts'
import { orderTwins } from './twins-order.ts'

/** The fence of a settlement, taken out of the statement's text. */
const token = '   and m.lease_token = s.token\n'
const unfenced = (text: string): string => replaceOnce(text, token, '')
/** Of messages of one claim it names the token once; a parameter that nobody names has no type. */
const unfencedAck = (text: string): string =>
  text.includes(token)
    ? unfenced(text)
    : replaceOnce(text, 'm.lease_token = $2::text::uuid', '$2::text::uuid is not null')
const holder = 'only the holder of the lease writes'

const settlements: readonly Twin[] = [
  {
    key: 'ack-unfenced',
    guard: 'an ack carries the token of its lease (Oban completes by id alone)',
    breaks: { delete_acked: unfencedAck },
    scenario: 'ack-reclaim',
    promise: holder,
  },
  {
    key: 'ack-unchanged',
    guard: 'an ack returns what it has deleted (River returns the row that it has left as it was)',
    breaks: { delete_acked: answersAnyway },
    scenario: 'ack-reclaim',
    promise: holder,
  },
  {
    key: 'follow-on-unfenced',
    guard: 'an ack with follow-ons carries the token of its lease',
    breaks: { delete_with_follow_ons: (text) => replaceOnce(text, '     and m.lease_token = s.token\n', '') },
    scenario: 'follow-on-reclaim',
    promise: holder,
  },
  {
    key: 'follow-on-anyway',
    guard: 'follow-ons are written only if the delete has landed',
    breaks: {
      delete_with_follow_ons: (text) =>
        replaceOnce(text, '    join settled as s\n      on s.seq = d.cause\n', ''),
    },
    scenario: 'follow-on-reclaim',
    promise: 'nothing changes that was not reported',
  },
  {
    key: 'retry-unfenced',
    guard: 'a retry carries the token of its lease',
    breaks: { reschedule_retried: indented },
    scenario: 'retry-reclaim',
    promise: holder,
  },
  {
    key: 'snooze-unfenced',
    guard: 'a snooze carries the token of its lease',
    breaks: { snooze_messages: indented },
    scenario: 'snooze-reclaim',
    promise: holder,
  },
  {
    key: 'release-unfenced',
    guard: 'a release carries the token of its lease',
    breaks: { release_leases: indented },
    scenario: 'release-reclaim',
    promise: holder,
  },
  {
    key: 'release-lowers',
    guard: 'a release puts the count of deliveries back to what it was, whether its own was counted or not',
    breaks: {
      release_leases: (text) =>
        replaceOnce(text, 'deliveries = s.deliveries', 'deliveries = m.deliveries - 1'),
    },
    scenario: 'count-release',
    promise: 'nothing changes that was not reported',
  },
  {
    key: 'snooze-lowers',
    guard: 'a snooze puts the count of deliveries back to what it was, whether its own was counted or not',
    breaks: {
      snooze_messages: (text) =>
        replaceOnce(text, 'deliveries = s."deliveriesBefore"', 'deliveries = m.deliveries - 1'),
    },
    scenario: 'count-release',
    promise: 'nothing changes that was not reported',
  },
  {
    key: 'count-unfenced',
    guard: 'who counts the delivery of a suspect carries the token of its lease',
    breaks: {
      count_delivery: (text) => replaceOnce(text, 'm.lease_token = $2::uuid', '$2::uuid is not null'),
    },
    scenario: 'count-reclaim',
    promise: holder,
  },
  {
    key: 'bury-unfenced',
    guard: 'a burial carries the token of its lease',
    breaks: { bury_dead: indented },
    scenario: 'bury-reclaim',
    promise: holder,
  },
  {
    key: 'quarantine-unfenced',
    guard: 'a quarantine carries the token of its lease',
    breaks: { quarantine_dead: unfenced },
    scenario: 'quarantine-reclaim',
    promise: holder,
  },
  {
    key: 'quarantine-due',
    guard: 'what is quarantined is due never',
    breaks: { quarantine_dead: (text) => replaceOnce(text, `due_at = 'infinity',`, '') },
    scenario: 'quarantine-reclaim',
    promise: 'nothing changes that was not reported',
  },
]

const transactions: readonly Twin[] = [
  {
    key: 'fence-untokened',
    guard: 'the fence of a transaction asks for the token',
    breaks: {
      fence_transaction: (text) => replaceOnce(text, '   and m.lease_token = s.token\n', ''),
    },
    scenario: 'tx-reclaim',
    promise: holder,
  },
  {
    key: 'fence-unlocked',
    guard: 'the fence of a transaction locks the row',
    breaks: { fence_transaction: (text) => replaceOnce(text, '\n   for update of m', '') },
    scenario: 'tx-reclaim',
    promise: 'nobody takes a message from an open transaction',
  },
  {
    key: 'complete-in-transaction',
    guard:
      'a handler that has lost its lease does not commit its work (River’s JobCompleteTx returns the row as it is, and does)',
    breaks: { delete_acked: answersAnyway },
    scenario: 'tx-unfenced',
    promise: holder,
  },
  {
    key: 'delete-in-transaction',
    guard: 'the delete in a transaction carries the token of its lease',
    breaks: { delete_acked: unfencedAck },
    scenario: 'tx-reclaim',
    redundant: 'the fence holds the row’s lock by then: nobody can have taken the lease meanwhile',
  },
]

export const twins: readonly Twin[] = [
  ...settlements,
  ...claimTwins,
  ...nameTwins,
  ...transactions,
  ...orderTwins,
]

function indented(text: string): string {
  return replaceOnce(text, /\s+and m\.lease_token = s\.token/, '')
}

/** Deletes as it should, and answers with whatever was asked for. */
function answersAnyway(text: string): string {
  return `with gone as (${text})
select s.seq::text as seq
  from unnest($1::text::bigint[]) as s(seq)`
}
