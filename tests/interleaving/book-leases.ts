// Entries of who claims, and of who writes by a lease. Pure.
import { unreachable } from '../../packages/postbox/src/core/unreachable.ts'
import { isFirst, standsBefore } from './book-order.ts'
import {
  type Account,
  type Booked,
  broken,
  bySeq,
  changed,
  type Entering,
  type Entry,
  ended,
  entryOf,
  holderOf,
  type Of,
  shortId,
  shortToken,
  stateOf,
  without,
} from './books.ts'
import type { Ending, Made } from './terms.ts'

const leaseHours = 1 / 60

export function claimed(entering: Entering, { lease, deliveries, keepsName }: Of<'claimed'>): Booked {
  const { account, hour } = entering
  const entry = bySeq(account, lease.seq)
  const what = `#${shortId(lease.id)} by ${shortToken(lease.token)}`
  const fencer = [...account.open.values()].some(({ told }) =>
    told.some((one) => one.kind === 'written' && one.ending.kind === 'fenced' && one.lease.seq === lease.seq),
  )
  if (fencer) return broken('nobody takes a message from an open transaction', `${what} was claimed`)
  if (account.pausedBy !== null) return broken('nothing is claimed of a paused queue', `${what} was claimed`)
  if (entry === undefined || !isFree(entry, hour))
    return broken('only what is free is claimed', `${what} was claimed, and was ${stateOf(account, lease)}`)
  const before = account.messages.find((one) => standsBefore(one, entry) && one.token !== lease.token)
  if (lease.key !== undefined && before !== undefined)
    return broken(
      'nothing of its key stands before what is claimed',
      `${what} was claimed, and #${shortId(before.id)} was ${stateOf(account, { ...lease, id: before.id, seq: before.seq ?? '' })}`,
    )
  if (deliveries !== entry.deliveries + 1)
    return broken('every claim counts a delivery', `${what} was told delivery ${deliveries}`)
  return changed(account, entry, {
    token: lease.token,
    leaseEnds: hour + leaseHours,
    // A suspect is counted when it is run.
    deliveries: entry.deliveries > entry.attempts ? entry.deliveries : deliveries,
    deliveriesBefore: entry.deliveries,
    ...(keepsName ? {} : { timer: null, fired: entry.timer ?? entry.fired }),
  })
}

/** Who claims while nobody else is about finds everything that is free, as far as there is room. */
export function claimedEnough(
  { account, hour, wasAlone }: Entering,
  { room, isSure }: Of<'claimed enough'>,
): Booked {
  const left = account.messages.filter((entry) => isFree(entry, hour) && isFirst(account, entry))
  if (!(wasAlone || isSure) || room <= 0 || left.length === 0 || account.pausedBy !== null) return { account }
  return broken('what is free is found', `#${shortId(left[0]!.id)} was free, and not claimed`)
}

function isFree({ token, leaseEnds, dueAt, laterKey }: Entry, hour: number): boolean {
  if (laterKey !== null) return false
  return (token === null || leaseEnds < hour) && (dueAt === null || dueAt <= hour)
}

export function written(entering: Entering, { lease, ending }: Of<'written'>): Booked {
  const { account } = entering
  const what = `${shortToken(lease.token)} reported #${shortId(lease.id)} as ${ending.kind}`
  const entry = bySeq(account, lease.seq)
  if (entry === undefined && account.ends.has(lease.id))
    return broken('a message ends once', `${what}, and it was ${account.ends.get(lease.id)} already`)
  if (entry === undefined || entry.token !== lease.token)
    return broken('only the holder of the lease writes', `${what}, and it was ${stateOf(account, lease)}`)
  return endingOf(entering, entry, ending)
}

function endingOf({ account, hour }: Entering, entry: Entry, ending: Ending): Booked {
  const free = { token: null, leaseEnds: 0 }
  switch (ending.kind) {
    case 'acked':
      return { account: withFollowOns(ended(account, entry, 'acked'), ending.followOns, hour) }
    case 'extended':
      return changed(account, entry, { leaseEnds: hour + leaseHours })
    case 'counted':
      return changed(account, entry, { deliveries: entry.deliveriesBefore + 1 })
    case 'released': {
      const names = namesAfter(account, entry, ending.takesName)
      return changed(account, entry, { ...free, ...names, deliveries: entry.deliveriesBefore })
    }
    case 'snoozed': {
      const names = namesAfter(account, entry, ending.takesName)
      const deliveries = entry.deliveriesBefore
      return changed(account, entry, { ...free, ...names, deliveries, dueAt: hour + ending.delayHours })
    }
    case 'retried': {
      const names = namesAfter(account, entry, ending.takesName)
      const attempts = entry.attempts + 1
      return changed(account, entry, { ...free, ...names, attempts, dueAt: hour + ending.delayHours })
    }
    case 'buried': {
      const { id, deliveries, cycles, timer, fired } = entry
      const letter = { id, deliveries, cycles, attempts: entry.attempts + 1, timer: timer ?? fired }
      return { account: { ...without(account, entry), dead: [...account.dead, letter] } }
    }
    case 'parked':
    case 'quarantined':
      return changed(account, entry, {
        ...free,
        attempts: entry.attempts + 1,
        isFailed: true,
        isParked: ending.kind === 'parked',
        dueAt: Number.POSITIVE_INFINITY,
      })
    case 'fenced':
      return { account }
    default:
      return unreachable(ending)
  }
}

/** Timers that are kept are those whose name has a holder. */
function withFollowOns(account: Account, followOns: readonly Made[], hour: number): Account {
  const written = followOns.filter(({ timer }) => timer === null || holderOf(account, timer) === undefined)
  const entries = written.map((made) => entryOf(made, hour, null))
  return { ...account, messages: [...account.messages, ...entries] }
}

/** What goes back to waiting takes its timer's name back, unless another has it by then. */
function namesAfter(
  account: Account,
  { timer, fired }: Entry,
  takesName: boolean,
): Pick<Entry, 'timer' | 'fired'> {
  if (!takesName || fired === null || holderOf(account, fired) !== undefined) return { timer, fired }
  return { timer: fired, fired: null }
}

/** Refused though nobody else was about, and the lease is the one that is stored: then it was refused for nothing. */
export function leaseLost({ account, wasAlone }: Entering, { lease, ending }: Of<'lease lost'>): Booked {
  const entry = bySeq(account, lease.seq)
  if (!wasAlone || entry?.token !== lease.token) return { account }
  return broken(
    'the holder of the lease may write',
    `#${shortId(lease.id)} was not ${ending.kind}, and its lease was lost to nobody`,
  )
}
