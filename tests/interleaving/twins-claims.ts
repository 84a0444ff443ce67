// Claims and renewals without a guard.
import { replaceOnce } from './replace-once.ts'
import type { Twin } from './twin.ts'

const isFree = 'and (m.lease_token is null or m.leased_until < now())'
const lockingClause = 'for update of m skip locked'

/** The claim has two lanes, of the same conditions: the due one comes first. */
function inLane(text: string, lane: 'due' | 'fresh', change: (part: string) => string): string {
  const [due, fresh, ...others] = text.split('union all')
  if (due === undefined || fresh === undefined) throw new Error('expected two lanes')
  return [lane === 'due' ? change(due) : due, lane === 'fresh' ? change(fresh) : fresh, ...others].join(
    'union all',
  )
}

const lanes = [
  { lane: 'due', taken: 'ack-midway', locked: 'ack-midway' },
  { lane: 'fresh', taken: 'ack-reclaim', locked: 'rescue' },
] as const

const inLanes: readonly Twin[] = lanes.flatMap(({ lane, taken, locked }) => [
  {
    key: `claim-leased-${lane}`,
    guard: `a claim of ${lane} rows leaves those that are leased`,
    breaks: { claim_messages: (text) => inLane(text, lane, (part) => replaceOnce(part, isFree, '')) },
    scenario: taken,
    promise: 'only what is free is claimed',
  },
  {
    key: `claim-never-over-${lane}`,
    guard: `a claim of ${lane} rows takes those whose lease is over`,
    breaks: {
      claim_messages: (text) =>
        inLane(text, lane, (part) => replaceOnce(part, isFree, 'and m.lease_token is null')),
    },
    scenario: taken,
    promise: 'what is free is found',
  },
  {
    key: `claim-waits-${lane}`,
    guard: `a claim of ${lane} rows steps over those that are locked`,
    breaks: {
      claim_messages: (text) =>
        inLane(text, lane, (part) => replaceOnce(part, lockingClause, 'for update of m')),
    },
    scenario: locked,
    promise: 'it waits for nobody',
  },
])

const claims: readonly Twin[] = [
  {
    key: 'claim-unlocked',
    guard: 'a claim locks what it has looked at before it writes (River’s rescue does not look again)',
    breaks: { claim_messages: rescuing },
    scenario: 'rescue-patient',
    promise: 'only what is free is claimed',
  },
  {
    key: 'claim-early',
    guard: 'a claim leaves what is not due yet',
    breaks: {
      claim_messages: (text) =>
        replaceOnce(text, /and m\.due_at <= now\(\)\n/, `and m.due_at < 'infinity'\n`),
    },
    scenario: 'retry-later-reclaim',
    promise: 'only what is free is claimed',
  },
  {
    key: 'claim-uncounted',
    guard: 'a claim counts a delivery',
    breaks: {
      claim_messages: (text) => replaceOnce(text, 'then 0 else 1 end', 'then 0 else 0 end'),
    },
    scenario: 'ack-reclaim',
    promise: 'every claim counts a delivery',
  },
  {
    key: 'claim-counts-suspects',
    guard: 'a claim does not count the delivery of a suspect',
    breaks: { claim_messages: (text) => replaceOnce(text, 'then 0 else 1 end', 'then 1 else 1 end') },
    scenario: 'count-release',
    promise: 'every claim counts a delivery',
  },
  {
    key: 'claim-unsuspecting',
    guard: 'a claim tells which of its rows are suspects',
    breaks: { claim_messages: (text) => replaceOnce(text, 'where suspect is not null', 'where false') },
    scenario: 'count-release',
    promise: 'every claim counts a delivery',
  },
  {
    key: 'claim-keeps-name',
    guard: 'a claim gives the name of the timer up',
    breaks: { claim_messages: (text) => replaceOnce(text, 'timer_id = null,', '') },
    scenario: 'cancel-claim',
    promise: 'nothing changes that was not reported',
  },
]

const pauses: readonly Twin[] = [
  {
    key: 'claim-paused',
    guard: 'a claim takes nothing of a paused queue',
    breaks: {
      claim_messages: (text) =>
        replaceOnce(text, /case when coalesce\(.*\) then 0 else w\.room end as room/, 'w.room'),
    },
    scenario: 'pause-claim',
    promise: 'nothing is claimed of a paused queue',
  },
  {
    key: 'pause-second',
    guard: 'a pause leaves a queue that is paused as it is',
    breaks: { pause_queue: (text) => replaceOnce(text, '\n   where q.paused_at is null', '') },
    scenario: 'pause-pause',
    promise: 'who pauses first stays recorded',
  },
  {
    key: 'resume-second',
    guard: 'only a queue that is paused is resumed',
    breaks: { resume_queue: (text) => replaceOnce(text, '\n     and q.paused_at is not null', '') },
    scenario: 'pause-pause',
    promise: 'what is paused is resumed once',
  },
]

const hasty: readonly Twin[] = [
  {
    key: 'fresh-suspects',
    guard: 'the least claim leaves what was delivered before, which may be a suspect',
    breaks: {
      claim_fresh: (text) =>
        replaceOnce(text, /and m\.lease_token is null\n\s+and m\.deliveries <= m\.attempts/, ''),
    },
    scenario: 'fresh-reclaim',
    promise: 'nothing changes that was not reported',
  },
  {
    key: 'fresh-leased',
    guard: 'the least claim leaves what is leased',
    breaks: { claim_fresh: (text) => replaceOnce(text, /and m\.lease_token is null\n/, '\n') },
    scenario: 'fresh-reclaim',
    redundant: 'what is leased has been delivered without an outcome, and that is asked, too',
  },
  {
    key: 'fresh-waits',
    guard: 'the least claim steps over rows that are locked',
    breaks: { claim_fresh: (text) => replaceOnce(text, lockingClause, 'for update of m') },
    scenario: 'fresh-claim',
    promise: 'it waits for nobody',
  },
  {
    key: 'fresh-uncounted',
    guard: 'the least claim counts a delivery',
    breaks: { claim_fresh: (text) => replaceOnce(text, 'deliveries = m.deliveries + 1,', '') },
    scenario: 'fresh-reclaim',
    promise: 'every claim counts a delivery',
  },
  {
    key: 'fresh-paused',
    guard: 'the least claim takes nothing of a paused queue',
    breaks: { claim_fresh: (text) => replaceOnce(text, /and not exists \(select from .*\n/, '\n') },
    scenario: 'fresh-pause',
    promise: 'nothing is claimed of a paused queue',
  },
]

const renewals: readonly Twin[] = [
  {
    key: 'renew-unfenced',
    guard: 'a renewal carries the token of its lease',
    breaks: { extend_leases: (text) => replaceOnce(text, '      and m.lease_token = s.token\n', '') },
    scenario: 'renew-reclaim',
    promise: 'only the holder of the lease writes',
  },
  {
    key: 'renew-waits',
    guard: 'a renewal steps over rows that are locked',
    breaks: { extend_leases: (text) => replaceOnce(text, 'for update of m skip locked', 'for update of m') },
    scenario: 'tx-renew',
    promise: 'it waits for nobody',
  },
]

export const claimTwins: readonly Twin[] = [...inLanes, ...claims, ...pauses, ...hasty, ...renewals]

/** Candidates by a look without a lock, then a write by their places: what has become of them meanwhile is not asked. */
function rescuing(text: string): string {
  const unlocked = (part: string): string =>
    replaceOnce(replaceOnce(part, 'm.ctid as spot', 'm.seq as spot'), lockingClause, '')
  const looked = inLane(inLane(text, 'due', unlocked), 'fresh', unlocked)
  const written = 'any(array(select spot from picked))'
  return replaceOnce(looked, `m.ctid = ${written}`, `m.seq = ${written}`)
}
